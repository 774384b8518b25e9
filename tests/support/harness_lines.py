"""Later harnesses that append lines of JSON: pi, Droid, Copilot, Cursor, Kimi, Qwen."""

from tests.support.harness_kind import MS, Entry, Kind, lines_at, text_block
from tests.support.logs import stamp

# ---------------------------------------------------------------- pi


def _pi(role: str, content: object, **more: object) -> Entry:
    message = {"role": role, "content": content, **more}
    return {
        "type": "message",
        "id": "e1",
        "parentId": None,
        "timestamp": stamp(1),
        "message": message,
    }


def _pi_entry(kind: str, **more: object) -> Entry:
    return {"type": kind, "id": "e1", "parentId": None, "timestamp": stamp(1), **more}


PI = Kind(
    "pi",
    lines_at(
        "--shop--/2026_s1.jsonl",
        {
            "type": "session",
            "version": 3,
            "id": "s1",
            "timestamp": stamp(0),
            "cwd": "/home/ada/shop",
        },
    ),
    lambda words: _pi("user", text_block(words)),
    lambda words: _pi("assistant", text_block(words)),
    lambda tool, args, call, result: [
        _pi("assistant", [{"type": "toolCall", "id": call, "name": tool, "arguments": args}]),
        _pi("toolResult", text_block(result), toolCallId=call, toolName=tool, isError=False),
    ],
    {
        "result": lambda word: _pi(
            "toolResult", text_block(word), toolCallId="c9", toolName="read"
        ),
        "result as text": lambda word: _pi("toolResult", word, toolCallId="c9", isError=True),
        "details": lambda word: _pi("toolResult", [], toolCallId="c9", details={"diff": word}),
        "shell output": lambda word: _pi("bashExecution", None, command="", output=word),
        "injected": lambda word: _pi_entry("custom_message", content=word, customType="x"),
        "extension": lambda word: _pi_entry("custom", data={"x": word}),
        "image": lambda word: _pi("user", [{"type": "image", "data": word}]),
        "system": lambda word: _pi("system", text_block(word)),
        "unknown role": lambda word: _pi("news", text_block(word)),
        "unknown block": lambda word: _pi("user", [{"type": "news", "text": word}]),
        "message of another shape": lambda word: _pi_entry("message") | {"message": word},
        "content of another shape": lambda word: _pi("user", {"text": word}),
    },
    {
        "thinking": lambda word: _pi("assistant", [{"type": "thinking", "thinking": word}]),
        "label": lambda word: _pi_entry("label", label=word),
    },
    lambda words: _pi_entry("compaction", summary=words, firstKeptEntryId="e0"),
    lambda fields: _pi_entry("news", **fields),
)

# ---------------------------------------------------------------- Droid


def _droid(role: str, *blocks: Entry) -> Entry:
    return {"type": "message", "id": "m1", "parentId": "s1", "timestamp": stamp(1),
            "message": {"role": role, "content": list(blocks)}}  # fmt: skip


def _droid_line(kind: str, **more: object) -> Entry:
    return {"type": kind, "id": "m1", "timestamp": stamp(1), **more}


DROID = Kind(
    "droid",
    lines_at("shop/s1.jsonl", {"type": "session_start", "id": "s1", "cwd": "/home/ada/shop"}),
    lambda words: _droid("user", {"type": "text", "text": words}),
    lambda words: _droid("assistant", {"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _droid("assistant", {"type": "tool_use", "id": call, "name": tool, "input": args}),
        _droid("user", {"type": "tool_result", "tool_use_id": call, "content": result}),
    ],
    {
        "result": lambda word: _droid(
            "user", {"type": "tool_result", "tool_use_id": "c9", "content": text_block(word)}
        ),
        "reminder": lambda word: _droid(
            "user", {"type": "text", "text": f"<system-reminder>{word}</system-reminder>"}
        ),
        "image": lambda word: _droid("user", {"type": "image", "source": {"data": word}}),
        "to-dos": lambda word: _droid_line("todo_state", todos=[word]),
        "unknown role": lambda word: _droid("system", {"type": "text", "text": word}),
        "content of another shape": lambda word: _droid_line(
            "message", message={"content": {"x": word}}
        ),
    },
    {
        "thinking": lambda word: _droid("assistant", {"type": "thinking", "thinking": word}),
    },
    lambda words: _droid_line("compaction_state", summaryText=words),
    lambda fields: _droid_line("news", **fields),
)


def _stream(kind: str, **more: object) -> Entry:
    return {"type": kind, "session_id": "s1", "timestamp": stamp(1), "id": "m1", **more}


DROID_STREAM = Kind(
    "droid",
    lines_at("out.jsonl", _stream("system", subtype="init", cwd="/home/ada/shop")),
    lambda words: _stream("message", role="user", text=words),
    lambda words: _stream("message", role="assistant", text=words),
    lambda tool, args, call, result: [
        _stream("tool_call", toolCallId=call, toolName=tool, parameters=args),
        _stream("tool_result", toolCallId=call, value={"stdout": result, "exitCode": 0}),
    ],
    {
        "result": lambda word: _stream("tool_result", toolCallId="c9", value=word),
        "error": lambda word: _stream("error", message=word),
        "unknown role": lambda word: _stream("message", role="system", text=word),
    },
)

# ---------------------------------------------------------------- Copilot


def _copilot(kind: str, **data: object) -> Entry:
    return {"type": kind, "data": data, "id": "e1", "timestamp": stamp(1), "parentId": None}


COPILOT = Kind(
    "copilot",
    lines_at("s1/events.jsonl",
             _copilot("session.start", sessionId="s1", context={"cwd": "/home/ada/shop"})),
    lambda words: _copilot("user.message", content=words, attachments=[]),
    lambda words: _copilot("assistant.message", content=words, toolRequests=[]),
    lambda tool, args, call, result: [
        _copilot("assistant.message", content="",
                 toolRequests=[{"toolCallId": call, "name": tool, "arguments": args}]),
        _copilot("tool.execution_complete", toolCallId=call, success=True, result={"content": result}),
    ],
    {
        "result": lambda word: _copilot(
            "tool.execution_complete", toolCallId="c9", success=False, result={"content": word}
        ),
        "start": lambda word: _copilot("tool.execution_start", toolCallId="c9", arguments={"x": word}),
        "partial": lambda word: _copilot("tool.execution_partial_result", partialOutput=word),
        "transformed": lambda word: _copilot("user.message", content="", transformedContent=word),
        "attachment": lambda word: _copilot(
            "user.message", content="", attachments=[{"type": "file", "content": word}]
        ),
        "system": lambda word: _copilot("system.message", content=word),
        "notification": lambda word: _copilot("system.notification", content=word),
        "hook": lambda word: _copilot("hook.start", input={"toolResult": word}),
        "hook's end": lambda word: _copilot("hook.end", output=word),
        "skill": lambda word: _copilot("skill.invoked", content=word),
        "sub-agent": lambda word: _copilot("subagent.started", agentDescription=word),
        "notice": lambda word: _copilot("session.info", message=word),
        "another's prompt": lambda word: _copilot("user.message", content=word, source="hook-x"),
        "data of another shape": lambda word: _copilot("user.message") | {"data": word},
        "content of another shape": lambda word: _copilot("assistant.message", content=[word]),
    },
    {
        "reasoning": lambda word: _copilot("assistant.reasoning", content=word),
        "reasoning text": lambda word: _copilot("assistant.message", content="", reasoningText=word),
    },
    lambda words: _copilot("session.compaction_complete", summaryContent=words),
    lambda fields: _copilot("session.news", **fields),
)  # fmt: skip

# ---------------------------------------------------------------- Cursor


def _cursor(role: str, *blocks: Entry) -> Entry:
    return {"role": role, "message": {"content": list(blocks)}}


CURSOR = Kind(
    "cursor",
    lines_at("shop/agent-transcripts/s1/s1.jsonl"),
    lambda words: _cursor(
        "user", {"type": "text", "text": f"<user_query>\n{words}\n</user_query>"}
    ),
    lambda words: _cursor("assistant", {"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _cursor("assistant", {"type": "tool_use", "name": tool, "input": args})
    ],
    {
        "result": lambda word: _cursor(
            "user", {"type": "tool_result", "tool_use_id": "t", "content": text_block(word)}
        ),
        "old result": lambda word: _cursor("user", {"type": "tool-result", "content": word}),
        "context": lambda word: _cursor(
            "user",
            {
                "type": "text",
                "text": f"<attached_files>{word}</attached_files><user_query></user_query>",
            },
        ),
        "image": lambda word: _cursor("user", {"type": "image", "data": word}),
        "unknown block": lambda word: _cursor("assistant", {"type": "news", "text": word}),
        "content of another shape": lambda word: {
            "role": "user",
            "message": {"content": {"x": word}},
        },
    },
    {"thinking": lambda word: _cursor("assistant", {"type": "thinking", "thinking": word})},
    None,
    lambda fields: {"type": "news", **fields},
    session="s1",
    project=None,
)

# ---------------------------------------------------------------- Kimi


def _kimi(kind: str, **more: object) -> Entry:
    return {"type": kind, **more, "time": MS}


def _kimi_event(kind: str, **more: object) -> Entry:
    return _kimi("context.append_loop_event", event={"type": kind, **more})


def _kimi_said(sender: str, words: str, role: str = "user") -> Entry:
    message = {"role": role, "content": text_block(words), "origin": {"kind": sender}}
    return _kimi("context.append_message", message=message)


KIMI = Kind(
    "kimi",
    lines_at(
        "wd/s1/agents/main/wire.jsonl",
        {"type": "metadata", "protocol_version": "1.4", "created_at": MS},
        _kimi("config.update", cwd="/home/ada/shop"),
    ),
    lambda words: _kimi("turn.prompt", input=text_block(words), origin={"kind": "user"}),
    lambda words: _kimi_event("content.part", part={"type": "text", "text": words}),
    lambda tool, args, call, result: [
        _kimi_event("tool.call", toolCallId=call, name=tool, args=args),
        _kimi_event("tool.result", toolCallId=call, result={"output": result}),
    ],
    {
        "result": lambda word: _kimi_event("tool.result", toolCallId="c9", result={"output": word}),
        "copy": lambda word: _kimi_said("user", word),
        "injection": lambda word: _kimi_said("injection", word),
        "other message": lambda word: _kimi_said("news", word, "tool"),
        "system prompt": lambda word: _kimi("config.update", systemPrompt=word),
        "tools": lambda word: _kimi("llm.tools_snapshot", tools=word),
        "request": lambda word: _kimi("llm.request", prompt=word),
        "approval": lambda word: _kimi("permission.record_approval_result", action=word),
        "trigger": lambda word: _kimi("turn.prompt", input=text_block(word), origin={"kind": "cron"}),
        "image": lambda word: _kimi("turn.prompt", input=[{"type": "image_url", "url": word}]),
        "unknown event": lambda word: _kimi_event("news", text=word),
        "event of another shape": lambda word: _kimi("context.append_loop_event", event=word),
        "old agent": lambda word: {"timestamp": 1.7e9, "message": {
            "type": "SubagentEvent", "payload": {"event": word}}},
    },
    {"thinking": lambda word: _kimi_event("content.part", part={"type": "think", "think": word})},
    lambda words: _kimi("context.apply_compaction", summary=words),
    lambda fields: _kimi("context.news", **fields),
    session=None,
)  # fmt: skip

# ---------------------------------------------------------------- Qwen


def _qwen(kind: str, *parts: Entry, **more: object) -> Entry:
    role = "model" if kind == "assistant" else "user"
    return {"uuid": "u1", "parentUuid": None, "sessionId": "s1", "timestamp": stamp(1), "type": kind,
            "cwd": "/home/ada/shop", "message": {"role": role, "parts": list(parts)}, **more}  # fmt: skip


def _qwen_system(subtype: str, **payload: object) -> Entry:
    made = _qwen("system", subtype=subtype, systemPayload=payload)
    del made["message"]
    return made


QWEN = Kind(
    "qwen",
    lines_at("shop/chats/s1.jsonl"),
    lambda words: _qwen("user", {"text": words}),
    lambda words: _qwen("assistant", {"text": words}),
    lambda tool, args, call, result: [
        _qwen("assistant", {"functionCall": {"id": call, "name": tool, "args": args}}),
        _qwen("tool_result",
              {"functionResponse": {"id": call, "name": tool, "response": {"output": result}}},
              toolCallResult={"callId": call, "status": "success", "resultDisplay": result}),
    ],
    {
        "result": lambda word: _qwen(
            "tool_result", {"functionResponse": {"id": "c9", "response": {"output": word}}}
        ),
        "result's text": lambda word: _qwen("tool_result", {"text": word}),
        "hook's part": lambda word: _qwen("user", {"text": f"<qwen:user-prompt-submit-context>{word}"}),
        "hook's payload": lambda word: _qwen("user", systemPayload={"hookContext": word}),
        "notification": lambda word: _qwen("user", {"text": word}, subtype="notification"),
        "telemetry": lambda word: _qwen_system("ui_telemetry", uiEvent={"function_args": word}),
        "compression": lambda word: _qwen_system("chat_compression", compressedHistory=[word]),
        "command output": lambda word: _qwen_system(
            "slash_command", rawCommand="", outputHistoryItems=[word]
        ),
        "title": lambda word: _qwen_system("custom_title", customTitle=word),
        "unknown system": lambda word: _qwen_system("news", text=word),
        "image": lambda word: _qwen("user", {"inlineData": {"data": word}}),
        "message of another shape": lambda word: _qwen("user") | {"message": word, "systemPayload": {}},
    },
    {"thinking": lambda word: _qwen("assistant", {"text": word, "thought": True})},
    None,
    lambda fields: {**_qwen("news"), "message": None, **fields},
)  # fmt: skip
