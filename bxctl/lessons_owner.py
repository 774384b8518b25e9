"""`bxctl memory lessons`, what only the owner does: settings, pages, bundles out, lines for AGENTS.md.

In: options. Out: files that are named, text on standard output, a question before anything outside of memoryd's
own folder is written.
"""

import sys
from typing import Any

from bxctl import lessons_views as shown
from bxctl import output
from bxctl.context import Context
from bxctl.grammar import Argument, Choice, Command, Option
from memoryd.errors import BadRequest

VERSION = 1


def retrospective(context: Context, *, session: str) -> int:
    """Write the page of a session and print where it lies; 1 when nothing failed in it."""
    with context.daemon() as memory:
        answer = memory.call("lessons.retrospective", session=session)
    if context.out.json:
        context.out.value("retrospective", VERSION, answer)
    elif "file_path" in answer:
        context.out.show(shown.line(answer["file_path"]))
    else:
        output.say(answer["message"])
    return 0 if "file_path" in answer else 1


def export(context: Context, *, untrusted: bool, **options: Any) -> int:
    """Print a bundle of decisions, rules and patterns; 1 when there is nothing to give away."""
    args = {"format": options["format"] or "okf", "untrusted": untrusted}
    if options["class"] is not None:
        args["max_class"] = options["class"]
    with context.daemon() as memory:
        answer = memory.call("lessons.export", **args)
    if context.out.json:
        context.out.value("bundle", VERSION, answer)
    elif answer["lessons"]:
        for text in answer["bundle"].rstrip("\n").split("\n"):
            context.out.line(text)
    else:
        output.say("there is nothing to give away")
    return 0 if answer["lessons"] else 1


def config(context: Context, *, set: str | None) -> int:
    """Print the settings, or set one."""
    with context.daemon() as memory:
        if set is not None:
            key, equals, value = set.partition("=")
            if not equals:
                raise BadRequest(
                    "--set takes KEY=VALUE", remedy="without it the settings are shown"
                )
            memory.call("lessons.config", action="set", key=key, value=value)
        answer = memory.call("lessons.config")
    if context.out.json:
        context.out.value("settings", VERSION, answer)
    else:
        context.out.show(shown.settings(answer["settings"]))
    return 0


def propose(context: Context, *, project: str | None, file: str | None, yes: bool) -> int:
    """Show what would go into a project's AGENTS.md, and write it once that is approved; 1 when it is not."""
    if project is None:
        raise BadRequest("--project is needed", remedy="name the project's folder")
    args = {"project": project} | ({} if file is None else {"file": file})
    with context.daemon() as memory:
        draft = memory.call("lessons.propose", **args)
        approved = bool(draft["diff"]) and (
            yes or (not context.out.json and _asked(context, draft))
        )
        if approved:
            draft = memory.call("lessons.propose", approve=True, hash=draft["hash"], **args)
    if context.out.json:
        context.out.value("proposal", VERSION, draft)
    elif not draft["lines"]:
        output.say("nothing is sure enough yet to be proposed")
    elif not draft["diff"]:
        output.say(f"{draft['file']} holds it already")
    elif draft["written"]:
        output.say(f"written to {draft['file']}; a copy is kept in memoryd's proposals/")
    else:
        output.say("nothing was written; say yes to the question, or --yes")
    return 0 if draft["written"] or (draft["lines"] and not draft["diff"]) else 1


def _asked(context: Context, draft: dict[str, Any]) -> bool:
    """Show the draft and return whether its owner approves it."""
    context.out.show(shown.draft(draft))
    if not sys.stdin.isatty():
        return False
    output.say(f"write this to {draft['file']}? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


COMMANDS = (
    Command(
        "retrospective",
        retrospective,
        "Write the page of a session (what failed, what was learned, what helped) and say where it lies.",
        (("bxctl memory lessons retrospective 4f1c2a3b", "of a session by its name"),),
        (),
        Argument("SESSION"),
    ),
    Command(
        "export",
        export,
        """Write a bundle of active decisions, rules and patterns that can be read in elsewhere.

Secrets are masked, and what is untrusted stays here unless you ask for it.""",
        (
            ("bxctl memory lessons export --class internal > team.okf", "for the team"),
            ("bxctl memory lessons export --format markdown", "to read"),
        ),
        (
            Option("format", "okf or markdown.", "FORM", Choice("okf", "markdown")),
            Option("class", "Only up to this class.", "CLASS"),
            Option("untrusted", "With what is untrusted."),
        ),
    ),
    Command(
        "config",
        config,
        "Show the settings of the lessons, or set one.",
        (
            ("bxctl memory lessons config", "all of them"),
            ("bxctl memory lessons config --set pre_prompt_budget_tokens=600", "smaller blocks"),
        ),
        (Option("set", "The setting and its new value.", "KEY=VALUE"),),
    ),
    Command(
        "propose",
        propose,
        """Draft lines for a project's AGENTS.md from proven patterns and rules, and write them once you approve.

They stand in one marked block; every other byte of the file stays what it was. Without an answer nothing is
written.""",
        (
            ("bxctl memory lessons propose --project ~/shop", "see the draft, then decide"),
            (
                "bxctl memory lessons propose --project ~/shop --file ~/shop/CLAUDE.md",
                "into another file",
            ),
        ),
        (
            Option("project", "The project's folder, as its sessions name it.", "PATH"),
            Option("file", "The file; AGENTS.md in the project without.", "PATH"),
            Option("yes", "Approve without being asked."),
        ),
    ),
)
