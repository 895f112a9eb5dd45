"""A planted bug must go in exactly where it is meant to, or say that it cannot."""

import pytest

from tests.faults.mutants import MUTANTS
from tests.faults.mutants.patching import DoesNotApply, apply

PATCH = """\
--- a/one.sql
+++ b/one.sql
@@ -1,3 +1,2 @@
 SELECT 1
--- a comment of SQL
 FROM job;
"""


def test_a_patch_applies_where_its_lines_are(tmp_path):
    path = tmp_path / "one.sql"
    path.write_text("moved down\nSELECT 1\n-- a comment of SQL\nFROM job;\n")

    apply(PATCH, tmp_path)

    assert path.read_text() == "moved down\nSELECT 1\nFROM job;\n"


@pytest.mark.parametrize("times", [0, 2])
def test_a_patch_without_one_clear_place_is_refused(tmp_path, times):
    (tmp_path / "one.sql").write_text("SELECT 1\n-- a comment of SQL\nFROM job;\n" * times)

    with pytest.raises(DoesNotApply):
        apply(PATCH, tmp_path)


def test_a_patch_without_a_hunk_is_refused(tmp_path):
    with pytest.raises(DoesNotApply):
        apply("", tmp_path)


def test_every_mutant_has_its_patch_and_every_patch_its_mutant():
    (folder,) = {mutant.patch.parent for mutant in MUTANTS}

    assert {path.stem for path in folder.glob("*.patch")} == {
        mutant.patch.stem for mutant in MUTANTS
    }
