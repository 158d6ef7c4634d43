import io

import pytest
from django.core.management import CommandError, call_command

from agents.services.erase import erase_resource
from memory.models import Resource
from memory.services.note import note
from tests.memory.services.editing import beekeeping, texts, wrong

pytestmark = pytest.mark.django_db


def om(*args):
    out = io.StringIO()
    code = 0
    try:
        call_command("om", *map(str, args), stdout=out)
    except SystemExit as end:
        code = end.code
    return out.getvalue(), code


@pytest.fixture
def world(resource):
    return beekeeping(resource)


@pytest.fixture
def file(world, tmp_path):
    file = tmp_path / "ada.jsonl"
    said, code = om("export", "ada", "--to", file)
    rows = len(file.read_text().splitlines()) - 2
    assert (said, code) == (f"Wrote {rows} rows of ada to {file}.\n", 0)
    return file


def test_what_is_written_to_a_file_is_what_is_written_out(file):
    assert om("export", "ada") == (file.read_text(), 0)


def test_a_dry_run_stores_nothing_and_an_import_everything(world, resource, file):
    erase_resource(resource)

    said, code = om("import", file, "--dry-run")
    assert (code, Resource.objects.count()) == (0, 0)
    assert "this was a dry run" in said

    said, code = om("import", file)
    assert said.endswith("Stored ada.\n")
    assert om("export", "ada") == (file.read_text(), 0)
    assert texts(world.record) == texts(world.record, 2)
    assert wrong() == []


def test_a_conflict_is_told_and_fails(world, file):
    note(world.record.pk, "Later")

    said, code = om("import", file)

    assert code == 1
    assert "Conflict: record" in said
    assert said.endswith("Nothing was stored.\n")


def test_what_is_no_bundle_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text("{}\n")
    for path in (file, tmp_path / "none.jsonl"):
        with pytest.raises(CommandError):
            call_command("om", "import", str(path), stdout=io.StringIO())


def test_an_unknown_resource_is_not_written(world):
    with pytest.raises(CommandError, match="There is no resource eve"):
        call_command("om", "export", "eve", stdout=io.StringIO())
