"""What is written below a field is what the document says about it."""

import msgspec

from lamplighter.server import field_notes, openapi, shapes
from lamplighter.server.routes import TABLE
from lamplighter.server.routes.jobs import JobQuery


def test_the_words_below_a_field_are_its_description():
    document = openapi.document(TABLE)
    job = document["components"]["schemas"]["Job"]["properties"]
    assert job["next_run"]["description"] == "When it is due, if it waits."
    assert "description" not in job["id"]


def test_parameters_are_described_too_also_those_that_are_shared():
    document = openapi.document(TABLE)
    parameters = document["paths"]["/v1/jobs"]["get"]["parameters"]
    said = {each["name"]: each.get("description") for each in parameters}
    assert (
        said["fingerprint"] == "Cause of the last error; `none` means jobs that have no such cause."
    )
    assert field_notes.notes(JobQuery)["fingerprint"] == said["fingerprint"]


class Homemade(msgspec.Struct):
    """A struct of somebody else."""

    field: int
    """Not ours to describe."""


def test_only_our_own_sources_are_read():
    assert field_notes.notes(Homemade) == {}
    assert field_notes.notes(shapes.Submitted)["id"].startswith("Id of the job")
