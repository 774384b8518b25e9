"""The rules: what a result is worth by its tool's name, its arguments, and the paths that they name."""

from pathlib import Path

import pytest

from memoryd import config
from memoryd.errors import ConfigError
from memoryd.labels import Label
from memoryd.rules import MAX_TRIED, Rules

HOME = Path("/home/ada")
STATE = HOME / ".local/state/memoryd"
PUBLIC, INTERNAL, PRIVATE, SECRET = range(4)
UNKNOWN = Label(SECRET, True)
TRUSTED, UNTRUSTED = Label(INTERNAL, False), Label(INTERNAL, True)
KEY = Label(SECRET, False)


def rules(text: str = "") -> Rules:
    return Rules(config.parse(text, Path("/x.toml")).config, state=STATE, home=HOME)


@pytest.fixture(scope="module")
def coding() -> Rules:
    return rules()


@pytest.fixture(scope="module")
def strict() -> Rules:
    return rules('[labels]\nprofile = "strict"')


def names(text: str) -> list[str]:
    return text.split()


# ---------------------------------------------------------------- profiles

FILE_TOOLS = names(
    "Read Edit Write MultiEdit NotebookEdit NotebookRead Glob Grep LS LSP read_file write_file replace "
    "apply_patch list_dir grep_files view_image"
)
TALK_TOOLS = names(
    "TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet ExitPlanMode EnterPlanMode AskUserQuestion "
    "Skill ToolSearch update_plan request_user_input"
)
SHELL_TOOLS = names(
    "Bash bash BashOutput KillShell KillBash shell shell_command local_shell exec_command write_stdin "
    "container.exec"
)
WEB_TOOLS = names("WebFetch WebSearch web_search web_fetch web_search_call hosted:code_execution")
OTHERS_TOOLS = names(
    "mcp__github__get_issue Task Agent TaskOutput AgentOutputTool spawn_agent wait_agent send_input "
    "ListMcpResourcesTool ReadMcpResourceTool list_mcp_resources read_mcp_resource SendMessage"
)


@pytest.mark.parametrize("tool", FILE_TOOLS + TALK_TOOLS + SHELL_TOOLS)
def test_the_owners_machine_is_internal_and_trusted_under_coding(coding, tool):
    assert coding.result(tool, {}) == TRUSTED


@pytest.mark.parametrize("tool", WEB_TOOLS)
def test_the_web_is_public_and_untrusted_under_both_profiles(coding, strict, tool):
    assert coding.result(tool, {}) == strict.result(tool, {}) == Label(PUBLIC, True)


@pytest.mark.parametrize("tool", OTHERS_TOOLS)
def test_servers_and_agents_are_internal_and_untrusted_under_both_profiles(coding, strict, tool):
    assert coding.result(tool, {}) == strict.result(tool, {}) == UNTRUSTED


@pytest.mark.parametrize("tool", FILE_TOOLS + SHELL_TOOLS)
def test_strict_distrusts_every_file_and_shell(strict, tool):
    assert strict.result(tool, {}) == UNTRUSTED


@pytest.mark.parametrize("tool", TALK_TOOLS)
def test_strict_trusts_planning_and_questions(strict, tool):
    assert strict.result(tool, {}) == TRUSTED


@pytest.mark.parametrize(
    "name",
    names(
        "attachment:file attachment:edited_text_file attachment:nested_memory attachment:invoked_skills "
        "attachment:compact_file_reference attachment:plan_file_reference attachment:hook_success "
        "attachment:async_hook_response hook local-command block:image block:document skill-text"
    ),
)
def test_25_attachments_hooks_and_local_commands_are_internal_and_in_strict_untrusted(
    coding, strict, name
):
    assert coding.brought(name) == TRUSTED
    assert strict.brought(name) == UNTRUSTED


@pytest.mark.parametrize(
    "name",
    ["attachment:mcp_instructions_delta", "attachment:queued_command", "attachment:task_status",
     "task-notification"],
)  # fmt: skip
def test_25_what_others_wrote_is_untrusted_even_where_a_later_row_would_ignore_it(coding, name):
    assert coding.brought(name) == UNTRUSTED


@pytest.mark.parametrize(
    "name",
    names(
        "attachment:todo_reminder attachment:batching_reminder_sent attachment:skill_listing "
        "attachment:plan_mode_exit attachment:auto_mode attachment:date_change attachment:dynamic_skill "
        "attachment:deferred_tools_delta attachment:command_permissions attachment:read_truncation_notice "
        "attachment:ultra_effort_enter attachment:budget_usd compaction progress:bash_progress "
        "event:token_count preamble meta"
    ),
)
def test_the_harness_own_notices_and_copies_are_ignored(coding, strict, name):
    assert coding.brought(name) is None
    assert strict.brought(name) is None


def test_04_a_name_without_rule_is_top_and_untrusted(coding):
    assert coding.result("FailingTool", {}) == UNKNOWN
    assert coding.result("", {}) == UNKNOWN
    assert coding.result("READ", {}) == UNKNOWN  # names are compared as they are written
    assert coding.brought("record:news") == UNKNOWN
    assert not coding.known("FailingTool")
    assert coding.known("Read")
    assert coding.known("mcp__any__thing")
    assert not coding.known("hook")
    assert coding.known("hook", brought=True)


@pytest.mark.parametrize(
    "name", ["meta", "hook", "preamble", "compaction", "progress:x", "skill-text"]
)
def test_a_tool_that_is_called_like_a_notice_is_not_ignored(coding, name):
    assert coding.result(name, {}) == UNKNOWN


def test_15_a_hosted_call_is_looked_up_by_its_own_name_first(coding):
    assert coding.hosted("web_search", {"query": "x"}) == Label(PUBLIC, True)
    assert coding.hosted("code_execution", {}) == Label(PUBLIC, True)
    assert coding.hosted("mcp__x__y", {}) == UNTRUSTED


# ---------------------------------------------------------------- what looks like network use

NETWORK = [
    "curl -s https://example.org/x",
    "wget -q x.tgz",
    "gh pr view 3",
    "ssh host uptime",
    "scp a b:c",
    "nc -l 80",
    "git clone git@host:a/b",
    "git   pull --rebase",
    "git fetch",
    "pip install x",
    "pip3 download x",
    "npm install",
    "npm i x",
    "npm ci",
    "npx tsc",
    "uv sync",
    "uvx ruff",
    "cargo add serde",
    "cargo install x",
    "apt-get update",
    "sudo apt install x",
    "docker pull x",
    "cd x && curl y",
    "python -c 'open(\"http://x\")'",
    "echo one\ncurl two",  # in JSON this is \ncurl, which hides from \b
]
LOCAL = [
    "npm run build",
    "npm test",
    "git status && git log",
    "git push",
    "cargo build",
    "docker ps",
    "ls curls wgets ghost",
    "pytest -q",
    "make install",
    "echo fetch pull clone",
    "grep -rn sync_nc .",
]


@pytest.mark.parametrize("command", NETWORK)
def test_a_shell_command_that_looks_like_network_use_is_untrusted(coding, command):
    assert coding.result("Bash", {"command": command, "description": "Do it"}) == UNTRUSTED
    assert coding.result("shell", {"command": ["bash", "-lc", command]}) == UNTRUSTED
    assert coding.result("exec_command", {"cmd": command}) == UNTRUSTED
    assert coding.result("write_stdin", {"session_id": 1, "chars": command}) == UNTRUSTED
    assert coding.result("shell", command) == UNTRUSTED


@pytest.mark.parametrize("command", LOCAL)
def test_a_shell_command_that_stays_on_the_machine_is_trusted(coding, command):
    assert coding.result("Bash", {"command": command, "description": "Do it"}) == TRUSTED
    assert coding.result("shell", {"command": ["bash", "-lc", command]}) == TRUSTED


def test_the_description_of_a_command_counts_for_network_use(coding):
    assert coding.result("Bash", {"command": "./get", "description": "curl it"}) == UNTRUSTED
    assert coding.result("Read", {"file_path": "x", "description": "curl it"}) == TRUSTED


def test_a_key_counts_for_network_use_as_the_canonical_json_holds_it(coding):
    assert coding.result("Bash", {"env": {"curl": "1"}, "command": "x"}) == UNTRUSTED
    assert coding.result("Bash", {"https://x": 1}) == UNTRUSTED


# ---------------------------------------------------------------- the owner's tool rules

OWNER = """
[[labels.tool]]
match = "Bash"
args = 'deploy'
class = "private"
untrusted = false
[[labels.tool]]
match = "mcp__crm__*"
class = "secret"
untrusted = false
[[labels.tool]]
match = "attachment:file"
class = "private"
[[labels.tool]]
match = "Lookup"
args = '^\\{"id":7\\}$'
class = "public"
untrusted = false
"""


def test_the_owners_first_matching_rule_wins_over_the_profiles():
    owned = rules(OWNER)
    assert owned.result("Bash", {"command": "make deploy && curl x"}) == Label(PRIVATE, False)
    assert owned.result("Bash", {"command": "curl x"}) == UNTRUSTED
    assert owned.result("mcp__crm__find", {}) == Label(SECRET, False)
    assert owned.result("mcp__other__find", {}) == UNTRUSTED
    assert owned.brought("attachment:file") == Label(PRIVATE, True)


def test_a_rule_with_args_sees_the_canonical_json_and_no_match_leaves_no_rule():
    owned = rules(OWNER)
    assert owned.result("Lookup", {"id": 7}) == Label(PUBLIC, False)
    assert owned.result("Lookup", {"id": 8}) == UNKNOWN
    assert owned.hosted("Lookup", {"id": 7}) == Label(PUBLIC, False)


def test_args_are_tried_on_decoded_values_where_json_hides_a_word():
    owned = rules(
        '[[labels.tool]]\nmatch = "T"\nargs = \'\\bword\\b\'\nclass = "public"\nuntrusted = false'
    )
    assert owned.result("T", {"a": {"b": ["x\nword\ty"]}}) == Label(PUBLIC, False)
    assert owned.result("T", "x\nword") == Label(PUBLIC, False)
    assert owned.result("T", {"a": "xword"}) == UNKNOWN
    assert owned.result("T", {"word": None}) == Label(PUBLIC, False)
    assert owned.result("T", {"a": "\ud800 word"}) == Label(PUBLIC, False)
    assert owned.result("T", {"a": 2**70}) == UNKNOWN


def test_an_invalid_pattern_is_a_configuration_error():
    broken = config.Labels(start="public", tool=[config.ToolRule("x", "(", "public", False)])
    with pytest.raises(ConfigError, match="no regular expression"):
        Rules(config.Config(broken, config.Index("private")), state=STATE, home=HOME)


LOWERS = '[[labels.tool]]\nmatch = "T"\nargs = "end$"\nclass = "public"\nuntrusted = false\n'
RAISES = '[[labels.tool]]\nmatch = "Read"\nargs = "needle"\nclass = "private"\nuntrusted = true\n'


def test_a_pattern_sees_both_ends_of_a_long_value():
    filler = "x" * (4 * MAX_TRIED)
    assert rules(LOWERS).result("T", filler + "end") == Label(PUBLIC, False)
    assert rules(RAISES).result("Read", {"q": "needle" + filler}) == Label(PRIVATE, True)
    assert rules(RAISES).result("Read", {"q": filler + "needle"}) == Label(PRIVATE, True)


def test_a_pattern_that_did_not_see_all_of_a_value_can_only_raise():
    hidden = "x" * (2 * MAX_TRIED) + "needle" + "x" * (2 * MAX_TRIED)
    assert rules(RAISES).result("Read", {"q": hidden}) == Label(PRIVATE, True)
    assert rules(LOWERS).result("T", hidden) == UNKNOWN


# ---------------------------------------------------------------- path rules


@pytest.mark.parametrize(
    "path",
    [
        "/home/ada/.ssh/id_ed25519",
        "~/.ssh/config",
        "$HOME/.ssh/config",
        "${HOME}/.ssh/config",
        ".ssh/config",
        "./.ssh/config",
        "/home/ada/.ssh",
        "/home/ada/.ssh/",
        "//home//ada//.ssh//x",
        "/home/ada/src/../.ssh/x",
        "/HOME/ADA/.SSH/CONFIG",
        "file:///home/ada/.ssh/x",
        "file:///home/ada/%2Essh/x",
        ".env",
        "app/.env",
        "/srv/app/.env",
        "C:\\Users\\ada\\.ssh\\id_rsa",
        "/srv/my app/.env",
        "key.pem",
        "/etc/tls/server.pem",
        "~/.aws/credentials",
        "credentials.json",
        "~/.netrc",
        "/x/id_rsa.pub",
        "~/.gnupg",
    ],
)
def test_a_key_path_is_secret_wherever_a_tool_names_it(coding, path):
    assert coding.result("Read", {"file_path": path}) == KEY
    assert coding.result("Grep", {"pattern": "x", "path": path}) == KEY
    assert coding.result("Write", {"file_path": path, "content": "x"}) == KEY
    assert coding.result("exec_command", {"cmd": "ls", "workdir": path}).level == SECRET
    assert coding.result("Read", {"paths": ["a.py", path]}) == KEY
    assert coding.paths("Read", {"file_path": path}) == KEY


@pytest.mark.parametrize(
    "args",
    [
        {"file_path": "/w/README.md", "content": "copy .env.example to .env, see ~/.ssh/config"},
        {"file_path": "/w/a.py", "old_string": ".env", "new_string": "/home/ada/.ssh/id_rsa"},
        {"pattern": "credentials", "path": "/w"},
        {"pattern": "/.ssh/", "path": "/w"},
        {"prompt": "read ~/.ssh/config", "description": "look into .env"},
        {"todos": [{"content": "rotate ~/.aws/credentials", "status": "pending"}]},
        {"questions": [{"question": "Use .env?", "options": [{"label": ".env"}]}]},
        {"file_path": "/w/environment.py"},
        {"file_path": "/w/.envrc"},
        {"url": "https://example.org/credentials.html"},
        {"subagent_type": "credentials-finder"},
        {"file_path": "/w/.ssh/../x"},
        {"file_path": ""},
        {"file_path": None, "limit": 3},
        {},
        None,
        [],
        7,
    ],
)
def test_text_that_only_mentions_a_key_path_raises_nothing(coding, args):
    assert coding.result("Read", args) == TRUSTED
    assert coding.paths("Read", args) == Label(PUBLIC, False)


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ~/.ssh/config",
        'cat "$HOME/.ssh/config"',
        'cat "$HOME"/.ssh/config',
        "cat ${HOME}/.ssh/config",
        "cat .e'n'v",
        "cat .en\\v",
        "cat .en\\\nv",
        "cat<.env",
        "ls;cat .env;ls",
        "(cat .env)",
        "curlless -d @.env",
        "docker run --env-file=.env x",
        "git show HEAD:app/.env",
        "cat '/srv/my app/.env'",
        "bash -c 'cat .env'",
        "bash -lc \"bash -c 'cat .env'\"",
        'echo "$(cat .env)"',
        "echo `cat .env`",
        "eval 'cat .env'",
        "python -c \"print(open('.env').read())\"",
        "cp .env* /tmp",
        "it's broken quoting; cat .env",
        "bash <<'EOF'\ncat .env\nEOF",
        "cat <<EOF | bash\ncat .env\nEOF",
        "cat <<EOF\n$(cat .env)\nEOF",
        "cat <<EOF\ncat .env",
        "grep x <<< y; cat .env",
        "cat ~/.ssh",
        "cat /home/ada/.SSH/x",
        "type C:\\Users\\ada\\.ssh\\id_rsa",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: app/.env\n+x\n*** End Patch\nEOF",
    ],
)
def test_a_key_path_is_secret_as_a_word_of_a_command(coding, command):
    assert coding.result("Bash", {"command": command, "description": "Look"}).level == SECRET
    assert coding.result("shell", {"command": ["bash", "-lc", command]}).level == SECRET
    assert coding.result("shell_command", command).level == SECRET


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'Load .env before start'",
        "git commit -m \"$(cat <<'EOF'\nIgnore .env and credentials\n\nSee .ssh/config\nEOF\n)\"",
        "cat > .gitignore <<'EOF'\n.env\ncredentials.json\nEOF",
        "cat > README.md <<EOF\nput it into .env\nEOF\nls",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.md\n+use .env\n*** End Patch\nEOF",
        "ls .envrc environment",
        "python -m venv .venv",
        "open https://example.org/credentials.html",
    ],
)
def test_a_command_that_only_mentions_a_key_path_is_not_secret(coding, command):
    assert coding.result("Bash", {"command": command, "description": "Read .env"}).level == INTERNAL


def test_words_of_a_list_are_words_and_lists_of_commands_are_commands(coding):
    assert coding.result("shell", {"command": ["cat", ".env"]}) == KEY
    assert (
        coding.result("local_shell", {"action": {"type": "exec", "command": ["cat", ".env"]}})
        == KEY
    )
    assert coding.result("mcp__box__run", {"commands": ["cd x", "cat .env"]}) == Label(SECRET, True)
    assert coding.result("mcp__box__run", {"command": "cat .env"}) == Label(SECRET, True)
    assert (
        coding.result("shell", {"command": ["grep", "x", "a b"], "justification": ".env"})
        == TRUSTED
    )


PATCH = """*** Begin Patch
*** Update File: src/a.py
+see {other}
*** {verb} File: {path}
*** End Patch"""


@pytest.mark.parametrize("verb", ["Add", "Update", "Delete"])
def test_the_files_of_a_patch_are_paths_and_its_lines_are_not(coding, verb):
    named = PATCH.format(verb=verb, path="app/.env", other="x")
    mentioned = PATCH.format(verb=verb, path="b.py", other="~/.aws/config and .env")
    for tool, wrap in (("apply_patch", str), ("apply_patch", lambda patch: {"input": patch})):
        assert coding.result(tool, wrap(named)) == KEY
        assert coding.result(tool, wrap(mentioned)) == TRUSTED
    moved = named.replace(f"*** {verb} File:", "*** Move to:")
    assert coding.result("apply_patch", moved) == KEY
    assert coding.result("shell", {"command": ["apply_patch", mentioned]}) == TRUSTED
    assert coding.result("shell", {"command": ["apply_patch", named]}) == KEY


@pytest.mark.parametrize(
    "head",
    [
        "--- a/x\n+++ b/app/.env\n@@ -1 +1 @@\n",
        "diff --git a/app/.env b/app/.env\n",
        "rename to app/.env\n",
        "--- app/.env\t2026-01-01\n+++ b/x\n",
    ],
)
def test_the_file_lines_of_a_unified_diff_are_paths(coding, head):
    assert coding.result("mcp__box__patch", {"diff": head + "-a\n+b"}).level == SECRET
    assert coding.result("apply_patch", head + "-a\n+b") == KEY
    assert coding.result("mcp__box__patch", {"diff": "--- a/x\n+++ b/y\n+.env"}).level == INTERNAL


def test_other_peoples_code_is_untrusted_and_paths_join_with_the_tools_own_label(coding):
    for path in (
        "node_modules/x/README.md",
        "/w/vendor/y.go",
        "~/Downloads/a.txt",
        "/v/site-packages/z.py",
    ):
        assert coding.result("Read", {"file_path": path}) == UNTRUSTED
    assert coding.result("Bash", {"command": "cat node_modules/x/.env"}) == Label(SECRET, True)
    assert coding.result("Unknown", {"file_path": "/w/.env"}) == UNKNOWN


def test_an_attached_file_counts_by_its_path(coding):
    assert coding.brought("attachment:file", {"path": "/w/.env"}) == KEY
    assert coding.brought("attachment:file", {"path": "/w/a.py"}) == TRUSTED
    assert coding.brought("meta", {"path": "/w/.env"}) is None


PLANS = '[[labels.path]]\nglob = "~/plans/**"\nclass = "private"\n'


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Read", {"file_path": "~/plans/a.md"}),
        ("Read", {"file_path": "/home/ada/plans/deep/a.md"}),
        ("Glob", {"path": "/home/ada", "pattern": "plans/*.md"}),
        ("Bash", {"command": "cat ~/plans/a.md"}),
        ("Bash", {"command": "cd ~ && cat plans/a.md"}),
        ("Bash", {"command": "cd ~/plans && ls"}),
        ("Bash", {"command": "git -C $HOME/plans log"}),
        ("exec_command", {"cmd": "cat a.md", "workdir": "/home/ada/plans"}),
        ("exec_command", {"cmd": "cat plans/a.md", "workdir": "/home/ada/"}),
        ("shell", {"command": ["cat", "plans/a.md"], "workdir": "/home/ada"}),
    ],
)
def test_the_owners_path_rules_follow_home_and_working_folders(tool, args):
    assert rules(PLANS).result(tool, args) == Label(PRIVATE, False)


def test_a_path_rule_of_the_owner_leaves_other_folders_alone():
    owned = rules(PLANS)
    for path in (
        "/home/bob/plans/a.md",
        "/home/ada/plans.md",
        "/home/ada/my/plans/a.md",
        "plans/a.md",
    ):
        assert owned.result("Read", {"file_path": path}) == TRUSTED


def test_a_glob_of_nothing_but_wildcards_or_home_itself_still_matches():
    assert rules('[[labels.path]]\nglob = "/**"\nclass = "private"').result(
        "Read", {"file_path": "/x"}
    ) == Label(PRIVATE, False)
    at_home = rules('[[labels.path]]\nglob = "~/**"\nclass = "private"')
    assert at_home.result("Bash", {"command": "ls ~"}) == Label(PRIVATE, False)
    assert at_home.result("Bash", {"command": "ls $HOME/x"}) == Label(PRIVATE, False)
    assert at_home.result("Read", {"file_path": "/home/ada/x"}) == Label(PRIVATE, False)
    assert at_home.result("Read", {"file_path": "/home/bob/x"}) == TRUSTED
    above = rules('[[labels.path]]\nglob = "/home/**"\nclass = "private"')
    assert above.result("Bash", {"command": "ls ~/x"}) == Label(PRIVATE, False)


def test_accents_and_case_of_a_path_do_not_matter():
    owned = rules('[[labels.path]]\nglob = "/srv/Übung/*"\nclass = "private"')
    for path in ("/srv/Übung/a", "/srv/U\u0308bung/a", "/SRV/ÜBUNG/A"):
        assert owned.result("Read", {"file_path": path}) == Label(PRIVATE, False)


# ---------------------------------------------------------------- memoryd's own answers

SOCKETS = """
[[socket]]
name = "memoryd"
clearance = "secret"
tools = ["*"]
[[socket]]
name = "agent"
clearance = "internal"
tools = ["recall"]
[[socket]]
name = "web_team"
clearance = "public"
untrusted = "exclude"
tools = ["recall"]
"""


@pytest.mark.parametrize(
    ("tool", "label"),
    [
        ("mcp__memoryd-agent__recall", Label(INTERNAL, True)),
        ("mcp__memoryd_agent__memory_view", Label(INTERNAL, True)),
        ("mcp__memoryd-web-team__recall", Label(PUBLIC, True)),
        ("mcp__memoryd-web_team__recall", Label(PUBLIC, True)),
        ("mcp__memoryd__recall", Label(SECRET, True)),
        ("mcp__memoryd-other__recall", Label(PRIVATE, True)),
        ("mcp__plugin_x_memoryd-agent__recall", Label(PRIVATE, True)),
        ("mcp__memorydish__recall", UNTRUSTED),
        ("mcp__github__memoryd_search", UNTRUSTED),
        ("mcp_memoryd-agent_recall", Label(PRIVATE, True)),
        ("mcp_github_issue", UNTRUSTED),
        ("memoryd_recall", UNKNOWN),
        ("memoryd___recall", UNKNOWN),
    ],
)
def test_a_memory_tool_takes_the_clearance_of_its_socket(tool, label):
    assert rules(SOCKETS).result(tool, {"query": "x"}) == label


def test_a_rule_of_the_owner_can_only_raise_a_memory_tool():
    lower = rules(
        '[[labels.tool]]\nmatch = "mcp__*"\nclass = "public"\nuntrusted = false\n' + SOCKETS
    )
    assert lower.result("mcp__memoryd-agent__recall", {}) == Label(INTERNAL, True)
    higher = rules('[[labels.tool]]\nmatch = "mcp__memoryd*"\nclass = "private"\n' + SOCKETS)
    assert higher.result("mcp__memoryd-agent__recall", {}) == Label(PRIVATE, True)


@pytest.mark.parametrize(
    "command",
    [
        "bxctl memory search x",
        "/usr/local/bin/bxctl status",
        "python -m memoryd",
        "uvx memoryd",
        "bash -c 'bxctl memory dump'",
        "nc -U $XDG_RUNTIME_DIR/memoryd/agent.sock",
        "cat ~/.local/state/memoryd/index/memory.sqlite3",
        "ls $MEMORYD_HOME",
        "echo $(bxctl memory search x)",
    ],
)
def test_a_command_that_asks_memoryd_counts_as_max_class_and_untrusted(coding, command):
    assert coding.result("Bash", {"command": command}) == Label(PRIVATE, True)


def test_a_command_that_only_talks_of_memoryd_does_not(coding):
    assert coding.result("Bash", {"command": "git commit -m 'Teach bxctl to count'"}) == TRUSTED
    assert coding.result("Bash", {"command": "ls", "description": "before bxctl"}) == TRUSTED
    assert coding.result("Read", {"file_path": "/w/memoryd/rules.py"}) == TRUSTED


def test_the_state_folder_counts_as_max_class_whoever_reads_it_and_its_notes_as_their_class(coding):
    state = "/home/ada/.local/state/memoryd"
    assert coding.result("Read", {"file_path": f"{state}/reads.jsonl"}) == Label(PRIVATE, True)
    assert coding.result("Read", {"file_path": f"{state}/notes/secret/a.md"}) == UNKNOWN
    assert coding.result("Bash", {"command": "cat $MEMORYD_HOME/notes/secret/a.md"}) == UNKNOWN
    elsewhere = Rules(config.parse("", Path("/x")).config, state=Path("/data/mem"), home=HOME)
    assert elsewhere.result("Read", {"file_path": "/data/mem/reads.jsonl"}) == Label(PRIVATE, True)
    assert elsewhere.result("Bash", {"command": "grep -r x /data/mem"}) == Label(PRIVATE, True)
    assert elsewhere.result("Read", {"file_path": "/data/memory"}) == TRUSTED


def test_path_rules_alone_leave_memoryd_out_since_such_a_log_states_its_labels(coding):
    assert coding.paths("Bash", {"command": "bxctl status"}) == Label(PUBLIC, False)
    assert coding.paths("Bash", {"command": "curl x"}) == Label(PUBLIC, False)
    assert coding.paths("Bash", {"command": "cat .env"}) == KEY
    assert coding.paths("Unknown", {"file_path": "node_modules/x"}) == Label(PUBLIC, True)


# ---------------------------------------------------------------- other classes, fingerprint, limits


@pytest.mark.parametrize(
    ("classes", "internal", "secret"),
    [
        (["public", "internal", "private", "secret"], 1, 3),
        (["public", "private", "secret"], 1, 2),
        (["public", "secret"], 1, 1),
        (["low", "high"], 1, 1),
        (["public", "internal"], 1, 1),
        (["secret", "public"], 1, 0),
        (["private", "public"], 1, 1),
        (["open"], 0, 0),
    ],
)
def test_a_class_that_only_the_profile_knows_counts_as_the_next_above_it(classes, internal, secret):
    text = f'[labels]\nclasses = {classes}\n[index]\nmax_class = "{classes[-1]}"'.replace("'", '"')
    owned = rules(text)
    assert owned.result("Read", {"file_path": "a"}).level == internal
    assert owned.paths("Read", {"file_path": ".env"}).level == secret


CHANGES = [
    '[labels]\nprofile = "strict"',
    '[labels]\nstart = "internal"',
    '[labels]\nclasses = ["public", "internal", "private", "secret", "top"]',
    '[index]\nmax_class = "internal"',
    '[[labels.tool]]\nmatch = "x"\nclass = "public"',
    '[[labels.tool]]\nmatch = "x"\nclass = "public"\nuntrusted = false',
    '[[labels.tool]]\nmatch = "x"\nclass = "public"\nargs = "y"',
    '[[labels.path]]\nglob = "x"\nclass = "public"',
    '[[labels.path]]\nglob = "x"\nuntrusted = true',
    SOCKETS,
]


def test_26_every_change_of_a_rule_changes_the_fingerprint():
    settings = config.parse("", Path("/x")).config
    prints = [rules(text).fingerprint for text in ["", *CHANGES]]
    prints.append(Rules(settings, state=Path("/elsewhere"), home=HOME).fingerprint)
    prints.append(Rules(settings, state=STATE, home=Path("/home/bob")).fingerprint)
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_stays_where_no_label_depends_on_the_change():
    same = '[index]\nkeep_days = 3\nvanished = "drop"\n[[source]]\npath = "/x"\n'
    assert rules(same).fingerprint == rules().fingerprint


def test_lookups_that_logs_can_fill_stay_bounded(monkeypatch):
    monkeypatch.setattr("memoryd.rules._MAX_KEPT", 10)
    monkeypatch.setattr("memoryd.hints._MAX_KEPT", 10)
    small = rules()
    for number in range(100):
        small.result(f"tool{number}", {f"key{number}": f"value{number}.py"})
        small.brought(f"record:{number}")
    assert small.result("Read", {"file_path": ".env"}) == KEY
    lookups = [small._plans, small._notices, small._hints._boring, *small._hints._kinds]
    assert max(map(len, lookups)) <= 10


def test_a_huge_command_is_read_in_time_and_still_raises(coding):
    command = "echo '" + "word " * 40_000 + "' cat .env"
    assert coding.result("Bash", {"command": command}).level == SECRET
