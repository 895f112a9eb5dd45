from benchmarks.parts.floor import floor, lines, statement, told
from benchmarks.scale import QUICK, Bench


async def test_the_statement_is_the_engines_own_with_a_new_id_each_time():
    script = await statement("somewhere")

    assert '"somewhere"."submit' in script
    assert "gen_random_uuid()" in script
    assert "%s" not in script
    assert script.count(";") == 1


def test_the_share_is_that_of_the_medians():
    found = told([50.0, 70.0, 10.0], [100.0, 90.0, 200.0])

    assert found["share"] == 0.5
    assert [line.mark for line in lines(found)] == ["", "", "MISSED"]
    assert [line.mark for line in lines(told([61.0], [100.0]))] == ["", "", "ok"]


async def test_an_engine_without_statements_says_so(tmp_path):
    found = await floor(Bench(engine="sqlite", folder=tmp_path, scale=QUICK))

    (line,) = lines(found)
    assert line.budget is None
    assert line.found.startswith("none: ")
