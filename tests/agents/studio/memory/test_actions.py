import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Line, Resource, Revision
from memory.services.edit import edit
from memory.services.forget import forget
from memory.tokens import count_line
from tests.memory.services.editing import beekeeping, line, texts, wrong

SCRIPT = {"HX-Request": "true"}


def latest(world):
    return Revision.objects.filter(record=world.record).latest("number")


def home(world):
    return f"/memory/{world.thread.pk}/"


def test_an_edit_counts_anew_names_its_author_and_offers_undo(here, world, ada):
    fields = {"text": "Ada keeps wild bees", "kind": "high", "reason": "Asked", "expected": "2"}

    answer = here.post(f"/memory/lines/{world.a1.pk}/edit", fields, headers=SCRIPT)

    made = latest(world)
    new = line(world.record, "Ada keeps wild bees")
    assert answer.status_code == 204
    assert answer["X-Undo"] == f"/memory/records/{world.record.pk}/undo/3"
    assert (made.cause, made.author, made.reason) == ("edit", ada, "Asked")
    assert (new.kind, new.tokens) == ("high", count_line("high", new.text, new.said_at))
    assert here.post(answer["X-Undo"], headers=SCRIPT).status_code == 204
    assert "Ada keeps bees" in texts(world.record)
    assert wrong() == []


def test_without_a_script_a_change_leads_back_to_the_line(here, world):
    came = {"Referer": f"http://testserver{home(world)}?group=priority"}

    answer = here.post(f"/memory/lines/{world.a1.pk}/pin", headers=came, follow=True)

    pinned = Line.objects.get(pinned=True, until=None)
    assert answer.redirect_chain == [(f"{home(world)}?group=priority#line-{pinned.pk}", 303)]
    assert "Pinned: every reflection leaves it standing." in answer.content.decode()


@pytest.mark.parametrize("came", ["https://evil.example/memory/x/", "http://testserver/chat/", ""])
def test_nobody_is_led_elsewhere(here, world, came):
    answer = here.post(f"/memory/lines/{world.a1.pk}/forget", headers={"Referer": came})

    assert answer.url == home(world)


def test_the_editor_opens_without_a_script_and_says_what_it_costs(here, world):
    html = here.get(f"{home(world)}?edit={world.a1.pk}").content.decode()

    assert 'id="editor" hx-morph-skip' in html
    assert ">Ada keeps bees</textarea>" in html
    assert "Prompt cache: the request changes from here on" in html
    assert f'formaction="/memory/lines/{world.a1.pk}/edit"' in html


def test_an_edit_on_what_somebody_changed_meanwhile_shows_both_and_loses_neither(here, world):
    edit(world.a1.pk, "Ada keeps wasps")
    fields = {"text": "Ada keeps hornets", "kind": "medium", "expected": "2"}

    part = here.post(f"/memory/lines/{world.a1.pk}/edit", fields, headers=SCRIPT)
    page = here.post(f"/memory/lines/{world.a1.pk}/edit", fields)

    assert (part.status_code, page.status_code) == (409, 409)
    for answer in (part, page):
        html = answer.content.decode()
        assert "Ada keeps wasps" in html
        assert "Ada keeps hornets" in html
        assert "Keep both" in html
    assert ">Ada keeps hornets</textarea>" in page.content.decode()
    assert "Ada keeps hornets" not in texts(world.record)


def test_mine_may_take_the_place_of_theirs(here, world):
    theirs = edit(world.a1.pk, "Ada keeps wasps")
    fields = {"text": "Ada keeps both", "onto": str(theirs.pk), "seen": "3", "expected": "2"}

    answer = here.post(f"/memory/lines/{world.a1.pk}/edit", fields, headers=SCRIPT)

    assert answer.status_code == 204
    assert "Ada keeps both" in texts(world.record)
    assert "Ada keeps wasps" not in texts(world.record)


def test_mine_may_stand_beside_theirs(here, world):
    edit(world.a1.pk, "Ada keeps wasps")

    fields = {"text": "Ada keeps hornets", "both": "1"}
    here.post(f"/memory/lines/{world.a1.pk}/edit", fields, headers=SCRIPT)

    assert {"Ada keeps wasps", "Ada keeps hornets"} <= set(texts(world.record))


def test_what_somebody_forgot_meanwhile_can_be_kept_as_a_note(here, world):
    forget(world.a1.pk)
    fields = {"text": "Ada keeps hornets", "expected": "2"}

    answer = here.post(f"/memory/lines/{world.a1.pk}/edit", fields, headers=SCRIPT)

    assert answer.status_code == 409
    assert "Keep mine as a note" in answer.content.decode()
    editor = here.get(f"{home(world)}?edit={world.a1.pk}").content.decode()
    assert "This line is out of sight by now" in editor


def test_another_line_cannot_be_changed_in_its_place(here, world):
    fields = {"text": "Ada keeps hornets", "onto": str(world.a0.pk), "expected": "2"}

    here.post(f"/memory/lines/{world.a1.pk}/edit", fields, headers=SCRIPT)

    assert "Ada asked for the time" in texts(world.record)


def test_an_empty_edit_is_refused_in_a_sentence_with_what_was_typed(here, world):
    url = f"/memory/lines/{world.a1.pk}/edit"

    part = here.post(url, {"text": " "}, headers=SCRIPT)
    page = here.post(url, {"text": " ", "reason": "Because"})

    assert (part.status_code, page.status_code) == (422, 422)
    assert "To take it out of sight, forget it" in part.content.decode()
    assert 'value="Because"' in page.content.decode()


def test_pin_unpin_and_forget_compare_what_was_seen(here, world):
    edit(world.a1.pk, "Ada keeps wasps")
    now = line(world.record, "Ada keeps wasps")

    for act in ("pin", "forget"):
        answer = here.post(f"/memory/lines/{now.pk}/{act}", {"expected": "2"}, headers=SCRIPT)
        assert answer.status_code == 409
        assert "Ada keeps wasps" in answer.content.decode()
    assert here.post(f"/memory/lines/{now.pk}/unpin", headers=SCRIPT).status_code == 422
    seen = {"expected": "3"}
    assert here.post(f"/memory/lines/{now.pk}/forget", seen, headers=SCRIPT).status_code == 204
    assert "Ada keeps wasps" not in texts(world.record)


def test_a_note_is_written_where_nothing_was_remembered(here, thread):
    url = f"/memory/{thread.pk}/note"

    refused = here.post(url, {"text": ""})
    answer = here.post(url, {"text": "Ada likes oak", "kind": "low"}, headers=SCRIPT)

    assert refused.status_code == 422
    assert answer.status_code == 204
    (written,) = Line.objects.all()
    assert (written.text, written.kind) == ("Ada likes oak", "low")


def test_a_dropped_line_is_restored_with_its_evidence(here, condensed):
    answer = here.post(f"/memory/lines/{condensed.a1.pk}/show", headers=SCRIPT)

    shown = line(condensed.record, "Ada keeps bees")
    assert answer.status_code == 204
    assert (shown.first_position, shown.last_position) == (3, 4)
    assert "Ada keeps bees for honey" in texts(condensed.record)


def test_a_revision_is_restored_and_that_can_be_undone(here, condensed):
    url = f"/memory/records/{condensed.record.pk}/restore/2/do"

    answer = here.post(url, {"reason": "Too short"}, headers=SCRIPT)

    assert "Ada keeps bees" in texts(condensed.record)
    assert latest(condensed).reason == "Too short"
    here.post(answer["X-Undo"], headers=SCRIPT)
    assert texts(condensed.record) == ["Ada keeps bees for honey"]
    assert here.post(url.replace("/2/", "/99/"), headers=SCRIPT).status_code == 404


def test_what_cannot_be_undone_says_so(here, world):
    answer = here.post(f"/memory/records/{world.record.pk}/undo/1", headers=SCRIPT)

    assert answer.status_code == 422
    assert "cannot be undone by itself" in answer.content.decode()


def addresses(world):
    of_line = [
        f"/memory/lines/{world.a1.pk}/{act}" for act in ("edit", "pin", "unpin", "forget", "show")
    ]
    of_record = [f"/memory/records/{world.record.pk}/{act}" for act in ("undo/1", "restore/1/do")]
    return [*of_line, *of_record, f"{home(world)}note", f"{home(world)}observe"]


def test_a_viewer_changes_nothing(reader, world):
    before = Revision.objects.count()

    assert {reader.post(url, {"text": "No"}).status_code for url in addresses(world)} == {403}
    assert Revision.objects.count() == before


def test_a_stranger_finds_nothing_to_change(client, ben, world):
    client.force_login(ben)

    assert {client.post(url, {"text": "No"}).status_code for url in addresses(world)} == {404}


def test_an_operator_reads_but_an_admin_alone_edits_what_is_anothers(client, ben, world):
    client.force_login(ben)
    ben.groups.add(Group.objects.create(name="operators"))
    assert client.get(home(world)).status_code == 200
    assert client.post(addresses(world)[0], {"text": "No"}).status_code == 403

    ben.groups.add(Group.objects.create(name="admins"))
    assert client.post(addresses(world)[0], {"text": "Yes"}).status_code == 303


def test_nothing_is_changed_by_reading_an_address(here, world):
    assert {here.get(url).status_code for url in addresses(world)} == {405}


# ---- several at once


def ticked(*lines, expected=2):
    return {"line": [str(each.pk) for each in lines], "expected": str(expected)}


def several(world, what):
    return f"/memory/records/{world.record.pk}/lines/{what}"


def test_several_lines_are_forgotten_in_one_revision_and_come_back_in_one(here, world):
    before = texts(world.record)

    answer = here.post(several(world, "forget"), ticked(world.a1, world.b0), headers=SCRIPT)

    assert answer.status_code == 204
    assert (latest(world).number, latest(world).cause) == (3, "forget")
    assert {world.a1.text, world.b0.text}.isdisjoint(texts(world.record))
    assert here.post(answer["X-Undo"], headers=SCRIPT).status_code == 204
    assert texts(world.record) == before
    assert wrong() == []


def test_what_is_pinned_already_is_left_as_it_is(here, world):
    here.post(f"/memory/lines/{world.a1.pk}/pin", headers=SCRIPT)
    pinned = Line.objects.get(pinned=True, until=None)

    answer = here.post(several(world, "pin"), ticked(pinned, world.b0, expected=3), headers=SCRIPT)
    again = here.post(several(world, "pin"), ticked(pinned, expected=4), headers=SCRIPT)

    assert (answer.status_code, again.status_code) == (204, 422)
    assert Line.objects.filter(pinned=True, until=None).count() == 2
    assert latest(world).number == 4


def test_where_one_line_moved_none_is_changed(here, world):
    edit(world.a1.pk, "Ada keeps wasps")

    for what in ("forget", "pin"):
        answer = here.post(several(world, what), ticked(world.b0, world.a1), headers=SCRIPT)
        assert answer.status_code == 409
        assert "Ada keeps wasps" in answer.content.decode()
    assert world.b0.text in texts(world.record)
    assert latest(world).number == 3


def test_how_many_statements_it_takes_does_not_depend_on_how_many_lines(here, world):
    def statements(*lines):
        with CaptureQueriesContext(connection) as found:
            here.post(several(world, "forget"), ticked(*lines, expected=99), headers=SCRIPT)
        return len(found)

    first = statements(world.a1)
    assert statements(world.a0, world.b0) == first


def test_without_a_script_several_are_chosen_and_copied_by_a_form(here, world):
    html = here.get(home(world)).content.decode()
    copied = here.post(several(world, "copy"), ticked(world.a1, world.b0))
    nothing = here.post(several(world, "copy"), {}, follow=True)
    forgotten = here.post(several(world, "forget"), ticked(world.a1), follow=True)

    assert f'name="line" value="{world.a1.pk}" form="several"' in html
    assert copied.content.decode() == f"{world.a1.text}\n{world.b0.text}\n"
    assert copied["Content-Type"].startswith("text/plain")
    assert "Tick lines first." in nothing.content.decode()
    assert "Forgotten. The lines stay in history." in forgotten.content.decode()


def test_lines_of_another_memory_are_not_reached_through_this_one(here, world, ben, profile):
    theirs = Resource.objects.create(key="ben", name="Ben")
    other = beekeeping(theirs)

    answer = here.post(several(world, "forget"), ticked(other.a1), headers=SCRIPT)

    assert answer.status_code == 422
    assert here.post(several(other, "forget"), ticked(other.a1)).status_code == 404
    assert other.a1.text in texts(other.record)


def test_who_may_only_read_ticks_nothing(reader, world):
    assert 'name="line"' not in reader.get(home(world)).content.decode()
    assert reader.post(several(world, "forget"), ticked(world.a1)).status_code == 403
    assert world.a1.text in texts(world.record)


@pytest.mark.parametrize("what", ["burn", "edit"])
def test_nothing_else_is_done_to_several(here, world, what):
    assert here.post(several(world, what), ticked(world.a1)).status_code == 404
