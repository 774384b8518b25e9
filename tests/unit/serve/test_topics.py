"""Topics: who is told of what, who is not, and what becomes of a subscriber that does not read."""

from typing import Any

import msgpack
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from memoryd.config import Socket
from memoryd.index.fresh import Fresh
from memoryd.index.scope import Scope
from memoryd.labels import Label
from memoryd.serve import connection
from memoryd.serve.peers import Asker, capability
from memoryd.serve.topics import TOPICS, Topics, granted_to, table
from tests.support.peer import HERE, TalkingPeer, allowing, talking
from tests.support.shelf import CLASSES

OWNER = Socket("memoryd", "secret", ["*"])
AGENT = Socket("agent", "internal", ["recall", "memory_view"])


def following(setting: Socket = OWNER, takes: int = 1 << 30) -> tuple[Topics, Any]:
    topics = Topics(CLASSES)
    return topics, talking(table(topics, CLASSES), capability(setting, CLASSES), takes=takes)


async def subscribed(peer: TalkingPeer, *topics: str, **more: Any) -> Any:
    await peer.send(
        peer.request("subscribe", **({"topics": list(topics)} if topics else {}), **more)
    )
    _, _, error, result = await peer.answer()
    assert error is None, error
    return result["topics"]


def test_the_topics_that_each_socket_may_be_told_of():
    told = {
        "owner": granted_to(capability(OWNER, CLASSES)),
        "agent": granted_to(capability(AGENT, CLASSES)),
        "recall": granted_to(capability(Socket("a", "internal", ["recall"]), CLASSES)),
        "none": granted_to(capability(Socket("a", "internal", ["memory_create"]), CLASSES)),
    }
    assert told == {
        "owner": TOPICS,
        "agent": ("record", "note", "lesson", "index"),
        "recall": ("record", "lesson", "index"),
        "none": ("lesson", "index"),
    }


async def test_a_subscriber_is_told_what_it_asked_for_and_with_which_label():
    topics, link = following()
    async with link as peer:
        assert await subscribed(peer, "note") == ["note"]
        topics.publish("index", {"generation": "g"}, labelled=False)
        topics.publish("note", {"path": "p"}, label=Label(1, True))
        told = {"path": "p", "class": "internal", "untrusted": True}
        assert await peer.answer() == [2, "note", [told]]


async def test_a_topic_that_the_socket_does_not_grant_is_refused_by_name():
    _, link = following(AGENT)
    async with link as peer:
        await peer.send(peer.request("subscribe", topics=["record", "progress"]))
        _, _, error, _ = await peer.answer()
        assert error[1].startswith(
            "not_granted: the socket 'agent' does not grant the topic progress"
        )
        await peer.send(peer.request("subscribe", topics=["everything"]))
        assert (await peer.answer())[2][1].startswith("bad_request: topics")
        assert await subscribed(peer) == ["record", "note", "lesson", "index"]


async def test_asking_again_replaces_what_was_asked_for_and_nothing_ends_it():
    topics, link = following()
    async with link as peer:
        await subscribed(peer, "note")
        await subscribed(peer, "index")
        topics.publish("note", {"path": "p"})
        topics.publish("index", {"generation": "g"}, labelled=False)
        assert (await peer.answer())[1] == "index"
        await peer.send(peer.request("subscribe", topics=[]))
        assert (await peer.answer())[3] == {"topics": []}
        topics.publish("index", {"generation": "g"}, labelled=False)
        await trio.testing.wait_all_tasks_blocked()
        assert peer.nothing_came()
        assert not topics.wanted("index")


async def test_what_belongs_to_the_owner_is_told_to_no_other():
    topics, link = following(AGENT)
    async with link as peer:
        await subscribed(peer)
        topics.publish("note", {"path": "p"}, owner=True)
        topics.publish("note", {"path": "q"})
        assert (await peer.answer())[2][0]["path"] == "q"


async def test_a_connection_that_has_ended_is_told_nothing_more():
    topics, link = following()
    async with link as peer:
        await subscribed(peer)
        await peer.leave()
        await peer.ended.wait()
        assert not topics.wanted("note")
        topics.publish("note", {"path": "p"})


async def test_rows_are_told_without_text_summed_up_by_log_and_label():
    topics, link = following()
    async with link as peer:
        await subscribed(peer, "record")
        topics.records([Fresh(Label(1, False), True, 3, "id", 0, "native", "s", "web")])
        assert await peer.answer() == [
            2,
            "record",
            [
                {
                    "id": "id",
                    "session": "s",
                    "project": "web",
                    "source": "native",
                    "ts": "1970-01-01T00:00:00.000Z",
                    "rows": 3,
                    "class": "internal",
                    "untrusted": False,
                }
            ],
        ]


@given(
    scope=st.builds(
        Scope,
        level=st.integers(0, 3),
        untrusted=st.sampled_from(["include", "owner-only", "exclude"]),
        projects=st.sampled_from([("*",), ("web",), ("w*", "x")]),
    ),
    events=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.booleans(),
            st.booleans(),
            st.sampled_from(["web", "shop", "w", None]),
        )
    ),
)
def test_a_subscriber_learns_of_nothing_that_it_may_not_see(scope, events):
    """Equal to a subscriber of a daemon in which the rest never happened."""
    got: list[tuple[str, dict[str, object]]] = []
    asker = Asker(HERE, allowing(), post=lambda topic, told: got.append((topic, told)))
    topics = Topics(CLASSES)
    topics.subscribe(asker, scope, ["record"])

    def seen(level: int, untrusted: bool, said: bool, project: str | None) -> bool:
        shown = not untrusted or scope.untrusted == "include"
        shown = shown or (scope.untrusted == "owner-only" and said)
        inside = scope.projects == ("*",) or project == "web"
        inside = inside or (scope.projects == ("w*", "x") and project == "w")
        return level <= scope.level and shown and inside

    for number, (level, untrusted, said, project) in enumerate(events):
        topics.publish(
            "record", {"n": number}, label=Label(level, untrusted), project=project, said=said
        )
    told = [one["n"] for _, one in got]
    assert told == [number for number, event in enumerate(events) if seen(*event)]


async def test_a_slow_subscriber_is_told_how_much_it_missed_and_never_waited_for_p19(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connection, "UNREAD", 2_000)
    topics, link = following(takes=500)
    async with link as peer:
        await peer.send(peer.request("subscribe", topics=["note"]))
        await trio.testing.wait_all_tasks_blocked()
        for number in range(300):
            topics.publish("note", {"path": str(number)})
        heard = [await peer.answer(), await peer.answer()]
        while heard[-1][1] != "lagged":
            heard.append(await peer.answer())
        told = [int(one[2][0]["path"]) for one in heard[1:-1]]
        missed = heard[-1][2][0]["missed"]
        assert told == list(range(len(told)))
        assert len(told) + missed == 300
        assert 10 < len(told) < 100
        topics.publish("note", {"path": "after"})
        assert (await peer.answer())[2][0]["path"] == "after"


async def test_nothing_overtakes_what_was_missed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "UNREAD", 60)
    topics, link = following(takes=40)
    async with link as peer:
        await peer.send(peer.request("subscribe", topics=["note"]))
        await trio.testing.wait_all_tasks_blocked()
        for number in range(9):
            topics.publish("note", {"path": str(number)})
        heard = []
        while not heard or heard[-1][1] != "lagged":
            heard.append(await peer.answer())
            await trio.testing.wait_all_tasks_blocked()
            if heard[-1][1] != "lagged":
                topics.publish("note", {"path": "more"})
        told = [one[2][0]["path"] for one in heard[1:-1]]
        assert told == [str(number) for number in range(len(told))]


async def test_a_subscriber_that_is_silent_is_not_closed_and_another_one_is(autojump_clock):
    topics, link = following()
    async with link as peer:
        await subscribed(peer, "index")
        await trio.sleep(5 * connection.IDLE_S)
        assert not peer.ended.is_set()
        topics.publish("index", {"generation": "g"}, labelled=False)
        assert (await peer.answer())[1] == "index"
        await peer.send(peer.request("subscribe", topics=[]))
        assert msgpack.packb((await peer.answer())[3])
        with trio.fail_after(3 * connection.IDLE_S):
            await peer.ended.wait()


async def test_a_subscriber_may_read_slowly_for_longer_than_an_answer_waits(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
):
    topics, link = following(takes=100)
    async with link as peer:
        await peer.send(peer.request("subscribe", topics=["note"]))
        await trio.testing.wait_all_tasks_blocked()
        for number in range(50):
            topics.publish("note", {"path": str(number)})
        await trio.sleep(10 * connection.SEND_S)
        assert not peer.ended.is_set()
        assert (await peer.answer())[3] == {"topics": ["note"]}
        for number in range(50):
            assert (await peer.answer())[2][0]["path"] == str(number)
