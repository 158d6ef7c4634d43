import re

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from agents.audit import AuditEntry
from memory.models import Blob, Cycle, Line, Revision
from memory.models.blob import digest
from memory.services.edit import edit
from memory.services.erase import erase_messages
from memory.services.forget import forget
from memory.services.note import note
from tests.memory.services.editing import line


def url(world, query=""):
    return f"/memory/{world.thread.pk}/{query}"


def text(answer):
    html = answer.content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def reply(world, said):
    Blob.objects.keep([said])
    Cycle.objects.filter(pk=world.r.cycle_id).update(reply_hash=digest(said))


def test_an_empty_memory_says_what_it_waits_for(here, thread):
    page = text(here.get(f"/memory/{thread.pk}/"))

    assert "This conversation has no memory yet" in page
    assert "of 600 tokens are waiting" in page


def test_revisions_are_listed_by_generation_with_cause_author_and_change(here, condensed, ada):
    edit(condensed.r0.pk, "Ada keeps bees for wax", author=ada, reason="She said so")

    html = here.get(url(condensed)).content.decode()
    listed = html[html.index('class="generation"') :].split('class="present"')[0]

    assert re.findall(r'id="rev-(\d+)"', listed) == ["4", "3", "2", "1"]
    newer, older = listed.split('class="generation"')[1:]
    assert 'data-cause="edit"' in newer
    assert "ada · “She said so”" in newer
    assert 'data-cause="reflect"' in newer
    assert older.count('data-cause="activate"') == 2


def test_the_curve_falls_at_a_reflection(here, condensed):
    html = here.get(url(condensed)).content.decode()

    points = re.search(r'<polyline points="([^"]+)"', html)[1].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[2] > heights[1]  # An SVG counts from the top.
    assert "condensed once" in html


def test_revisions_can_be_filtered_by_cause_and_author(here, world, ada):
    note(world.record.pk, "Mine", author=ada)

    html = here.get(url(world, "?cause=note&author=ada")).content.decode()

    assert re.findall(r'id="rev-(\d+)"', html) == ["3"]
    assert "No revision matches" in text(here.get(url(world, "?cause=pin")))


def test_many_revisions_come_in_pages(here, world):
    for number in range(70):
        note(world.record.pk, f"Note {number}")

    html = here.get(url(world)).content.decode()
    more = here.get(url(world, "?more=120")).content.decode()

    assert len(re.findall(r'id="rev-\d+"', html)) == 60
    assert "more=120" in html
    assert len(re.findall(r'id="rev-\d+"', more)) == 72


def test_a_revision_shows_what_was_visible_then_and_what_it_took_away(here, world):
    forget(world.a0.pk, reason="Old")

    before, after = text(here.get(url(world, "?rev=2"))), text(here.get(url(world)))

    assert "You look at revision 2. 1 newer one followed." in before
    assert "Ada asked for the time" in before
    assert "Taken out of sight by this revision (1)" in after
    assert "Restore" in after


@pytest.mark.parametrize(
    "query", ["?rev=9", "?rev=x", "?rev=-1", "?rev=99999999999999", "?with=9&view=diff"]
)
def test_what_there_is_not_is_not_found(here, world, query):
    assert here.get(url(world, query)).status_code == 404


def test_the_first_revision_and_nothing_before_it_can_be_shown(here, world):
    assert "Nothing is visible at this revision" in text(here.get(url(world, "?rev=0")))
    assert "2 added" in text(here.get(url(world, "?rev=1&view=diff")))


def test_any_two_revisions_can_be_compared_word_by_word(here, world):
    edit(world.a1.pk, "Ada keeps wild bees")
    note(world.record.pk, "A note")

    html = here.get(url(world, "?rev=4&with=1&view=diff")).content.decode()

    assert '<ins><span class="unseen">added: </span>wild </ins>' in html
    assert "2</b> added" in html
    assert "1</b> reworded" in html


def sides(html):
    """Return the texts of both sides of each line compared."""
    found = re.findall(r'<span class="side">(.*?)</span></span>', html, re.DOTALL)
    plain = [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in found]
    return list(zip(plain[::2], plain[1::2], strict=True))


def test_two_revisions_can_be_compared_side_by_side(here, world):
    edit(world.a1.pk, "Ada keeps wild bees")
    note(world.record.pk, "A note")

    html = here.get(url(world, "?rev=4&with=1&view=diff&sides=two")).content.decode()

    rows = sides(html)
    assert ("before Ada keeps bees", "after Ada keeps added: wild bees") in rows
    assert ("before – nothing", "after added: A note") in rows
    assert "sides=two" in html[html.index('aria-label="Compare with"') - 2000 :]
    assert 'class="sides"' not in here.get(url(world, "?rev=4&with=1&view=diff")).content.decode()


def test_what_a_reflection_merged_stands_beside_what_it_was_merged_from(here, condensed):
    reply(condensed, "<observations>\n* 🟡 Ada keeps bees for honey [#1,2,3]\n</observations>")

    html = here.get(url(condensed, "?rev=3&with=2&view=diff&sides=two")).content.decode()

    (merged,) = [row for row in sides(html) if "for honey" in row[1]]
    assert merged[0].count("removed:") == 3
    assert merged[1] == "after Ada keeps bees for honey"


def test_what_stayed_is_folded_in_a_comparison(here, world):
    for number in range(12):
        note(world.record.pk, f"Note {number}")
    note(world.record.pk, "The last")

    page = text(here.get(url(world, "?view=diff")))

    assert "11 unchanged" in page
    assert "1 added" in page


def test_a_reflection_lists_exactly_what_it_dropped_with_restore(here, condensed):
    reply(condensed, "<observations>\n* 🟡 Ada keeps bees for honey [#2,3]\n</observations>")

    html = here.get(url(condensed, "?rev=3")).content.decode()

    dropped = html[html.index('id="dropped"') :].split("</details>")[0]
    assert "Dropped by reflection 3" in dropped
    assert re.findall(r'formaction="/memory/lines/([^/]+)/show"', dropped) == [str(condensed.a0.pk)]
    assert "Ada asked for the time" in dropped
    merged = html[html.index("stands for 2 lines") :].split("</details>")[0]
    assert "Ada keeps bees" in merged
    assert "Ada asks about honey" in merged


def test_what_was_shown_again_is_not_told_as_dropped(here, condensed):
    reply(condensed, "<observations>\n* 🟡 Ada keeps bees for honey [#2,3]\n</observations>")
    here.post(f"/memory/lines/{condensed.a0.pk}/show")

    assert "Dropped by" not in text(here.get(url(condensed)))


def test_memory_can_be_read_as_the_agent_sees_it(here, world):
    seen = text(here.get(url(world, "?seen=agent")))
    raw = text(here.get(url(world, "?seen=agent&view=raw")))

    assert "&lt;observations&gt;" in seen
    assert "* 🟡 Ada keeps bees" in seen
    assert "This is your memory of earlier conversations" in raw


def failed(world):
    now = timezone.now()
    return Cycle.objects.create(
        record=world.record,
        lane="reflector",
        kind="reflect",
        status="failed",
        epoch=0,
        error="No attempt made it smaller.",
        lease_expires_at=now,
        finished_at=now,
    )


def test_a_failed_cycle_is_listed_and_says_why(here, reader, world):
    cycle = failed(world)

    html = here.get(url(world)).content.decode()
    page = here.get(url(world, f"?cycle={cycle.pk}"))

    assert f'id="cycle-{cycle.pk}"' in html
    assert "No attempt made it smaller." in text(page)
    assert "Try again now" not in text(page)  # A viewer may not.


def test_who_may_have_it_tried_again(here, world):
    page = text(here.get(url(world, f"?cycle={failed(world).pk}")))

    assert "Try again now" in page
    assert here.get(url(world, "?cycle=01a201d0-3f7b-7543-95fe-ca72b3cbcb27")).status_code == 404


def test_a_viewer_reads_everything_and_is_offered_no_change(reader, condensed):
    html = reader.get(url(condensed)).content.decode()

    assert "Read-only" in html
    assert "Ada keeps bees for honey" in html
    for control in ("data-edit", "data-pin", "data-forget", "/undo/", "add-note", "/show"):
        assert control not in html
    assert reader.get(url(condensed, f"?edit={condensed.r0.pk}")).content.count(b'id="editor"') == 0


def test_a_stranger_finds_nothing(client, ben, world):
    client.force_login(ben)
    record = world.record.pk
    for address in (
        url(world),
        url(world, "raw"),
        f"/memory/lines/{world.a0.pk}/",
        f"/memory/lines/{world.a0.pk}/sources",
        f"/memory/{record}/generations",
        f"/memory/records/{record}/restore/1/",
        "/memory/of/ada/",
    ):
        assert client.get(address).status_code == 404, address


def test_what_staff_read_of_another_leaves_a_trace(client, ben, world):
    ben.groups.add(Group.objects.create(name="operators"))
    client.force_login(ben)

    assert client.get(f"/memory/lines/{world.a0.pk}/sources").status_code == 200

    assert [(e.actor, e.resource_key) for e in AuditEntry.objects.all()] == [(ben, "ada")]


def test_where_something_is_is_told_for_what_is_was_waits_and_was_said(here, world):
    edit(world.a1.pk, "Ada keeps wasps")

    html = here.get(url(world, "?q=where+is+bees%3F")).content.decode()
    page = text(here.get(url(world, "?q=swarms")))

    assert "Earlier revisions" in html
    assert "Ada keeps <mark>bees</mark>" in html
    assert f"?rev=2#line-{world.a1.pk}" in html
    assert "Tell me about <mark>bees</mark>." in html
    assert f"/chat/{world.thread.pk}/?from=3#message-3" in html
    assert "Buffered" in page
    assert "not visible to the agent yet" in page
    assert "Nowhere" in text(here.get(url(world, "?q=unicorns")))


def test_erased_text_is_gone_from_every_revision_and_the_page_says_so(here, world, ada):
    erase_messages(world.thread.pk, 1, 2, author=ada, reason="Private")

    part = here.get(url(world, "?rev=1"))
    assert part.status_code == 200
    assert "Part of this revision was erased at revision 3 by ada" in text(part)
    assert "“Private”" in text(part)
    assert "Ada asked for the time" not in part.content.decode()


def test_a_revision_of_which_nothing_is_left_is_gone(here, world, ada):
    erase_messages(world.thread.pk, 1, 6, author=ada, reason="Private")

    answer = here.get(url(world, "?rev=1"))

    assert answer.status_code == 410
    assert "Revision 1 was erased" in text(answer)
    assert "by ada" in text(answer)
    assert here.get(url(world)).status_code == 200


def test_a_line_leads_to_where_it_stands_or_last_stood(here, world):
    edit(world.a1.pk, "Ada keeps wasps")
    now = line(world.record, "Ada keeps wasps")

    old = here.get(f"/memory/lines/{world.a1.pk}/").url
    assert old.startswith(url(world, "?rev=2&"))
    assert old.endswith(f"#line-{world.a1.pk}")
    assert f'id="line-{world.a1.pk}"' in here.get(old).content.decode()
    assert here.get(f"/memory/lines/{now.pk}/").url.startswith(url(world, "?opened="))


def test_the_page_is_asked_for_its_regions_alone_and_only_for_those_that_differ(here, world):
    first = here.get(url(world), headers={"X-Regions": "{}"}).content.decode()
    etags = dict(re.findall(r'id="(head|revisions|rows)" data-etag="(\w+)"', first))
    known = str(etags).replace("'", '"')

    assert set(etags) == {"head", "revisions", "rows"}
    assert here.get(url(world), headers={"X-Regions": known}).content == b""
    open_ = url(world, f"?edit={world.a1.pk}")
    edited = here.get(open_, headers={"X-Regions": known}).content.decode()
    assert "#rows" in edited
    assert 'hx-target="#head"' not in edited


def test_a_resource_without_a_shared_memory_lists_those_of_its_conversations(here, world):
    page = text(here.get("/memory/of/ada/"))

    assert "Each conversation remembers for itself" in page
    assert "The apiary" in page
    assert "revision 2" in page


def test_old_and_new_addresses_of_reflections_lead_to_them(here, condensed):
    page = here.get(f"/memory/{condensed.record.pk}/generations").content.decode()

    assert f"/memory/{condensed.thread.pk}/?rev=3" in page
    assert "Ada keeps bees for honey" in page


def test_a_restore_is_foretold_in_numbers(here, condensed):
    page = text(here.get(f"/memory/records/{condensed.record.pk}/restore/2/"))

    assert "3 lines are shown again" in page
    assert "1 line goes out of sight" in page
    assert here.get(f"/memory/records/{condensed.record.pk}/restore/9/").status_code == 404


def test_the_record_stays_as_it_is_while_it_is_read(here, condensed):
    before = (Revision.objects.count(), Line.objects.count())

    for query in ("", "?view=diff", "?view=raw", "?q=bees", "?rev=1", "?seen=agent"):
        here.get(url(condensed, query))

    assert (Revision.objects.count(), Line.objects.count()) == before
