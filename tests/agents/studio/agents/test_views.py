import pytest

from agents.models import AgentChange, AgentProfile
from agents.services.send import send
from agents.services.thread import start
from tests.agents.clients import client_of

pytestmark = pytest.mark.django_db

FIELDS = {
    "name": "Cook",
    "about": "Knows recipes.",
    "instructions": "Be brief.",
    "model": "offline",
    "tools": ["current_time"],
    "remembers": "on",
    "preset": "small",
}


@pytest.fixture
def admin(ada):
    ada.is_superuser = True
    ada.save()
    return client_of(ada)


@pytest.fixture
def reader(ben):
    return client_of(ben)


def test_everyone_reads_the_agents(reader, profile):
    assert "Tester" in reader.get("/agents/").content.decode()
    page = reader.get("/agents/tester/").content.decode()
    assert "You may look at this agent, but not change it." in page
    assert "Try it out" not in page
    assert "Duplicate" not in page
    assert "Delete" not in page


def test_conversations_are_counted_for_who_may_see_them(reader, admin, profile, thread):
    assert "<dd>0</dd>" in reader.get("/agents/").content.decode()
    assert "<dd>1 ·" in admin.get("/agents/").content.decode()


def test_without_agents_the_page_says_what_one_is(reader):
    assert "There are no agents yet." in reader.get("/agents/").content.decode()


@pytest.mark.parametrize("url", ["new/", "tester/", "tester/copy", "tester/remove", "new/test"])
def test_who_is_no_admin_changes_nothing(reader, profile, url):
    answer = reader.post(f"/agents/{url}", FIELDS)

    assert answer.status_code == 403
    assert "administer" in answer.content.decode()
    assert AgentProfile.objects.get().name == "Tester"


def test_an_agent_is_created_as_described(admin, ada):
    answer = admin.post("/agents/new/", FIELDS)

    assert answer.url == "/agents/cook/"
    made = AgentProfile.objects.get(slug="cook")
    assert (made.name, made.model, made.tools, made.remembers) == (
        "Cook",
        "offline",
        ["current_time"],
        True,
    )
    assert made.memory_options["message_tokens"] == 8000
    assert AgentChange.objects.get().author == ada


def test_a_changed_agent_says_who_changed_what(admin, profile):
    profile.model = "offline"
    profile.save()
    admin.post("/agents/tester/", {**FIELDS, "preset": "own", "name": "Tester"})

    profile.refresh_from_db()
    assert profile.about == "Knows recipes."
    assert profile.memory_options == {"message_tokens": 600, "observation_tokens": 200}
    change = AgentChange.objects.get()
    assert change.fields["about"] == {"before": "", "after": "Knows recipes."}
    assert set(change.fields) == {"about", "tools"}
    assert "by ada" in admin.get("/agents/tester/").content.decode()


def test_saving_what_is_as_it_was_leaves_no_trace(admin, profile):
    same = {
        "name": "Tester",
        "instructions": "Be brief.",
        "model": "",
        "tools": ["current_time", "recall"],
        "remembers": "on",
        "preset": "own",
    }
    AgentProfile.objects.update(model="")

    admin.post("/agents/tester/", same)

    assert not AgentChange.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": " "}, "Give it a name."),
        ({"instructions": ""}, "Say what the agent is to do."),
        ({"model": "gpt-5"}, "is not a model&#x27;s name"),
        ({"model": "nowhere:gpt-5"}, "there is no provider"),
        ({"slug": "tester"}, "There is an agent “tester” already."),
        ({"slug": "new"}, "but not “new”"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(
    admin, profile, wrong, said
):
    answer = admin.post("/agents/new/", {**FIELDS, **wrong})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert said in page
    assert "Knows recipes." in page
    assert AgentProfile.objects.count() == 1


def test_a_model_that_is_not_set_up_is_explained(admin, profile):
    assert "“fake” is not a model" in admin.get("/agents/tester/").content.decode()


def test_copies_have_names_of_their_own(admin, profile):
    for slug in ("tester-copy", "tester-copy-2"):
        AgentProfile.objects.filter(slug="tester").update(model="offline")
        assert admin.post("/agents/tester/copy").url == f"/agents/{slug}/"
    assert AgentProfile.objects.get(slug="tester-copy").memory_options == profile.memory_options


def test_an_agent_that_is_set_wrong_is_not_copied_and_says_why(admin, profile):
    answer = admin.post("/agents/tester/copy", follow=True)

    assert "It cannot be copied as it is." in answer.content.decode()
    assert AgentProfile.objects.count() == 1


def test_an_agent_goes_only_when_no_conversation_has_it(admin, profile, resource):
    thread = start(resource, profile)
    answer = admin.post("/agents/tester/remove")
    assert answer.status_code == 409
    assert "1 conversation has this agent." in answer.content.decode()

    thread.delete()
    assert admin.post("/agents/tester/remove").url == "/agents/"
    assert not AgentProfile.objects.exists()


def test_the_list_is_read_in_as_many_statements_for_many(
    reader, profile, resource, django_assert_num_queries
):
    def read():
        with django_assert_num_queries(4):
            reader.get("/agents/")

    read()
    for number in range(5):
        AgentProfile.objects.create(slug=f"a{number}", name="A", instructions="B")
        start(resource, profile)
    read()


def test_who_belongs_to_no_resource_asks_no_agent(reader, profile):
    assert reader.post("/agents/tester/test", {"prompt": "Hello there"}).status_code == 403


def test_asking_an_agent_counts_like_sending(admin, thread, ada, settings):
    AgentProfile.objects.update(model="offline")
    settings.SENDS_PER_MINUTE = 2
    send(thread.pk, "Hello", author=ada)
    asked = {"prompt": "Hello there"}
    assert "✓ answered" in admin.post("/agents/tester/test", asked).content.decode()
    assert "2 messages within a minute" in admin.post("/agents/tester/test", asked).content.decode()


def test_a_test_call_answers_and_stores_nothing(admin, profile):
    answer = admin.post(
        "/agents/tester/test",
        {**FIELDS, "prompt": "Hello there"},
        headers={"HX-Request": "true"},
    )

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "✓ answered" in page
    profile.refresh_from_db()
    assert profile.model == "fake"


def test_a_test_call_without_a_script_shows_the_form_as_typed(admin, profile):
    page = admin.post("/agents/tester/test", {**FIELDS, "prompt": "Hello"}).content.decode()

    assert "✓ answered" in page
    assert "Knows recipes." in page


def test_a_reader_tries_the_agent_as_it_is(reader, profile, resource, ben):
    resource.members.add(ben)
    page = reader.post("/agents/tester/test", {"prompt": "Hello"}).content.decode()

    assert "✕ failed" in page
    assert "“fake” is not a model" in page
