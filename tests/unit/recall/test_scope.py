import pytest

from memoryd.recall.scope import POLICIES, Scope, narrowed


@pytest.mark.parametrize(
    ("granted", "asked", "level"), [(2, None, 2), (2, 1, 1), (2, 3, 2), (0, 0, 0)]
)
def test_a_request_lowers_the_class_and_never_raises_it(granted, asked, level):
    assert narrowed(Scope(granted), level=asked).level == level


@pytest.mark.parametrize("granted", POLICIES)
@pytest.mark.parametrize("asked", POLICIES)
def test_the_stricter_policy_holds(granted, asked):
    strict = narrowed(Scope(1, granted), untrusted=asked).untrusted
    assert POLICIES.index(strict) == max(POLICIES.index(granted), POLICIES.index(asked))


def test_projects_and_ownership_are_the_sockets_own():
    scope = Scope(3, projects=("w*",), owner=True)
    assert narrowed(scope, level=0, untrusted="exclude") == Scope(0, "exclude", ("w*",), owner=True)


@pytest.mark.parametrize(
    ("globs", "project", "inside"),
    [
        (("*",), "web", True),
        (("*",), None, True),
        (("web",), "web", True),
        (("web",), "Web", False),
        (("web",), "web2", False),
        (("web",), None, False),
        (("*/web",), "/home/me/web", True),
        (("web",), "/home/me/web", False),
        (("api", "w*"), "web", True),
        ((), "web", False),
    ],
)
def test_projects_are_globs_on_the_whole_name(globs, project, inside):
    assert Scope(0, projects=globs).covers_project(project) == inside
