"""The shipped rules: what each built-in tool's result, and each other text a log brings in, is worth.

In: nothing. Out: two profiles. `coding` (the default) takes the owner's files and shell for what they are,
internal and trusted, and distrusts the network, other people's servers and other agents; `strict` distrusts
every file and every shell result as well.

A name that no row holds falls to no rule, which means the top class and untrusted: new tools cost recall
until someone has looked at them, never secrecy. `tools` are names of calls, `brought` names of what came
without a call; the two are kept apart, so that a tool that happens to be called `meta` is not ignored.
"""

from typing import NamedTuple


class ToolRule(NamedTuple):
    """One row: globs on names, and the class and trust of what they return.

    `cls` None: raises nothing, since its text repeats what is labelled already or carries nothing from
    outside. `args` (a regex) limits the row to calls whose arguments match. `hint` (a regex) must match
    within one run without spaces of every text that `args` matches; it only saves time. `about` is the row's
    name for people.
    """

    names: tuple[str, ...]
    cls: str | None
    untrusted: bool
    args: str | None = None
    hint: str | None = None
    about: str = ""


class PathRule(NamedTuple):
    """A glob on paths that a call names, and what is joined onto its result's label."""

    glob: str
    cls: str | None
    untrusted: bool


class Profile(NamedTuple):
    """Rows in order (the first match counts) and path rules (every match counts)."""

    tools: tuple[ToolRule, ...]
    brought: tuple[ToolRule, ...]
    paths: tuple[PathRule, ...]


CLASSES = ("public", "internal", "private", "secret")
"""The classes that these rows are written in, low to high."""

SHELLS = (
    *("Bash", "bash", "BashOutput", "KillShell", "KillBash", "PowerShell", "Monitor"),
    *("shell", "shell_command", "local_shell", "local_shell_call", "exec_command", "write_stdin"),
    *("container.exec", "unified_exec", "run_shell_command", "Shell", "Execute", "Await"),
    *("execute_command", "execute_bash", "terminal", "run_terminal_cmd", "run_command"),
    *("powershell", "read_bash", "write_bash", "stop_bash", "list_bash", "process"),
    *("developer__shell", "readCommandOutput"),
)
"""Tools whose arguments hold shell words."""

_FILES = (
    *("Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS"),
    *("LSP", "read_file", "write_file", "replace", "apply_patch", "list_dir", "grep_files"),
    *(
        "view_image",
        "read",
        "edit",
        "write",
        "grep",
        "find",
        "ls",
        "glob",
        "list",
        "view",
        "create",
    ),
    *("patch", "multiedit", "lsp", "rg", "list_directory", "search_file_content", "grep_search"),
    *("read_many_files", "edit_file", "delete_file", "file_search", "codebase_search"),
    *("search_replace", "str_replace_editor", "str_replace", "file_editor", "read_lints"),
    *("write_to_file", "apply_diff", "list_files", "search_files", "ReadFile", "WriteFile"),
    *("StrReplaceFile", "StrReplace", "ReadMediaFile", "Delete", "Create", "ApplyPatch"),
    *("EditNotebook", "ReadLints", "SemanticSearch", "readFile", "newFileCreated"),
    *("editedExistingFile", "appliedDiff", "listFilesTopLevel", "listFilesRecursive"),
    *("listCodeDefinitionNames", "searchFiles", "codebaseSearch", "fileDeleted"),
    *("insertContent", "searchAndReplace", "developer__text_editor", "developer__analyze"),
    *("planning_file_editor", "execute_ipython_cell"),
)

_TALK = (
    # planning, questions, skills: their results repeat the session's own words or the owner's
    *("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskStop"),
    *("ExitPlanMode", "exit_plan_mode", "EnterPlanMode", "EnterWorktree", "ExitWorktree"),
    *("AskUserQuestion", "Skill", "SlashCommand", "ToolSearch", "Config", "StructuredOutput"),
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "Sleep", "PushNotification"),
    *("SendUserMessage", "SendUserFile", "SendFeedback", "ReportFindings", "ShareOnboardingGuide"),
    *("EndConversation", "update_plan", "request_user_input", "request_permissions"),
    *("create_goal", "get_goal", "update_goal", "test_sync_tool"),
    *("todowrite", "todoread", "todo_write", "write_todos", "update_todo", "TodoList"),
    *("SetTodoList", "updateTodoList", "task_tracker", "todo__write", "todo__read", "question"),
    *("ask_user", "ask_user_question", "AskUser", "AskQuestion", "skill", "invoke_skill"),
    *("activate_skill", "invalid", "plan_enter", "plan_exit", "enter_plan_mode", "SwitchMode"),
    *("switchMode", "CreatePlan", "ExitSpecMode", "CreateGoal", "GetGoal", "SetGoalBudget"),
    *("UpdateGoal", "Think", "think", "finish", "finishTask", "task_complete", "report_intent"),
    *("save_memory", "fetchInstructions", "fetch_rules", "summarizeTask", "SendDMail"),
)

_WEB = (
    *("WebFetch", "WebSearch", "web_search", "web_fetch", "web_search_call", "web.run"),
    *("image_generation", "image_generation_call", "hosted:*", "webfetch", "websearch"),
    *("codesearch", "google_web_search", "FetchURL", "FetchUrl", "SearchWeb", "webFetch"),
    *("webSearch", "fetch_copilot_cli_documentation"),
)

_SERVERS = (
    # what connected servers answer, and what they say of themselves
    *("mcp__*", "ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool"),
    *("McpAuth", "WaitForMcpServers", "list_mcp_resources", "list_mcp_resource_templates"),
    *("read_mcp_resource", "tool_search", "tool_suggest", "request_plugin_install"),
    *("list_available_plugins_to_install", "mcp_*", "github-mcp-server-*", "CallMcpTool"),
    *("FetchMcpResource", "use_mcp_tool", "access_mcp_resource"),
    # a browser shows whatever the owner is logged in to
    *("browser", "browser_*", "computercontroller__*"),
)

_AGENTS = (
    *("Task", "Agent", "TaskOutput", "AgentOutputTool", "SendMessage", "ListAgents", "Workflow"),
    *("SubagentHandback", "TeamCreate", "TeamDelete", "RemoteTrigger", "Artifact"),
    *("spawn_agent", "wait_agent", "send_input", "wait", "close_agent", "resume_agent"),
    *("list_agents", "send_message", "followup_task", "interrupt_agent", "spawn_agents_on_csv"),
    *("report_agent_job_result", "get_memory"),
    # programs that call further tools, whose answers they pass on
    *("exec", "js_repl", "js_repl_reset", "artifacts", "batch"),
    *("task", "agent", "delegate", "AgentSwarm", "CreateSubagent", "Subagent", "read_agent"),
    *("codebase_investigator", "delegate_to_agent", "generalist", "newTask", "subagent__*"),
    *("sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "message"),
    *("memory_search", "memory_get"),
)

_OWN_TEXT = (
    # files, hooks and commands of the owner's machine
    *("attachment:file", "attachment:edited_text_file", "attachment:nested_memory"),
    *("attachment:compact_file_reference", "attachment:plan_file_reference"),
    *("attachment:invoked_skills", "attachment:hook_*", "attachment:async_hook_*"),
    *("attachment:already_read_file", "attachment:edited_image_file", "attachment:directory"),
    *("attachment:pdf_reference", "attachment:selected_lines_in_ide", "attachment:diagnostics"),
    *("attachment:opened_file_in_ide", "attachment:skill_discovery"),
    *("hook", "local-command", "block:image", "block:document", "skill-text"),
)

_OTHERS_TEXT = (
    *("attachment:mcp_*", "attachment:queued_command", "attachment:task_status"),
    *("attachment:teammate_*", "attachment:team_context", "attachment:agent_mention"),
    *("attachment:relevant_memories", "attachment:current_session_memory", "task-notification"),
)

_NOTICES = (
    # the harness's own words, and copies of what has its own record
    *("attachment:*_reminder", "attachment:*_reminder_sent", "attachment:skill_listing"),
    *("attachment:plan_mode*", "attachment:auto_mode*", "attachment:date_change"),
    *("attachment:*_delta", "attachment:command_permissions", "attachment:dynamic_skill"),
    *("attachment:read_truncation_notice", "attachment:ultra_effort_*", "attachment:budget_usd"),
    *("attachment:token_usage", "attachment:output_token_usage", "attachment:output_style"),
    *("attachment:max_turns_reached", "attachment:ultrathink_effort"),
    *("compaction", "progress:*", "event:*", "preamble", "meta"),
)

_NETWORK = (
    r"\b(?:curl|wget|gh|ssh|scp|nc|git\s+(?:clone|pull|fetch)|pip3?\s+(?:install|download)"
    r"|npm\s+(?:i|install|ci)|npx|uvx?|cargo\s+(?:add|install)|apt(?:-get)?|docker\s+pull)\b|https?://"
)
"""Commands that fetch other people's words; `npm run` and the like stay trusted."""

_NETWORK_HINT = r"\b(?:curl|wget|gh|ssh|scp|nc|clone|pull|fetch|install|download|npm|npx|uvx?|cargo|apt)\b|https?://"

_OTHERS_CODE = ("*/node_modules/*", "*/site-packages/*", "*/vendor/*", "*/Downloads/*")
_KEYS = (
    *("*/.ssh/*", "*/.gnupg/*", "*/.aws/*", "*/.netrc", "*/.env", "*.pem"),
    *("*/id_rsa*", "*/id_ed25519*", "*/credentials*"),
)


def _profile(*, trust_machine: bool) -> Profile:
    local = not trust_machine
    return Profile(
        tools=(
            ToolRule(_FILES, "internal", local, about="local files"),
            ToolRule(_TALK, "internal", untrusted=False, about="planning, questions, skills"),
            ToolRule(
                SHELLS,
                "internal",
                True,
                _NETWORK,
                _NETWORK_HINT,
                "shell that looks like network use",
            ),
            ToolRule(SHELLS, "internal", local, about="any other shell"),
            ToolRule(_WEB, "public", untrusted=True, about="web, hosted tools"),
            ToolRule(_SERVERS, "internal", untrusted=True, about="other servers"),
            ToolRule(_AGENTS, "internal", untrusted=True, about="other agents"),
        ),
        brought=(
            ToolRule(_OWN_TEXT, "internal", local, about="attached files, hooks, local commands"),
            ToolRule(_OTHERS_TEXT, "internal", untrusted=True, about="what others sent"),
            ToolRule(_NOTICES, None, untrusted=False, about="reminders, notices, copies"),
        ),
        paths=(
            *(PathRule(glob, None, untrusted=True) for glob in _OTHERS_CODE),
            *(PathRule(glob, "secret", untrusted=False) for glob in _KEYS),
        ),
    )


PROFILES: dict[str, Profile] = {
    "coding": _profile(trust_machine=True),
    "strict": _profile(trust_machine=False),
}
"""Name in the configuration to profile."""
