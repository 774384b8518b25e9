// memoryd for OpenCode: the memory block in the system prompt, again after a compaction, and a word to the
// daemon when a session is idle. What tools do is read from OpenCode's own log, so there are no tool hooks here.
// Written by `bxctl install opencode`; `bxctl uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = ["bxctl"] // replaced when installed
const OPTIONS = [] // replaced when installed
const PATIENCE_MS = 1000

// Runs one hook. It ends by itself within 200 ms; whatever goes wrong, the answer is "".
function hook(event, told) {
  return new Promise((resolve) => {
    const parts = []
    let child
    try {
      child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "opencode", event, ...OPTIONS], {
        stdio: ["pipe", "pipe", "ignore"],
      })
    } catch {
      return resolve("")
    }
    const late = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS)
    child.on("error", () => {
      clearTimeout(late)
      resolve("")
    })
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part) => parts.push(part))
    child.on("close", () => {
      clearTimeout(late)
      try {
        resolve(JSON.parse(Buffer.concat(parts).toString("utf8")).text ?? "")
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(told))
  })
}

export const Memoryd = async ({ directory }) => {
  const blocks = new Map() // session -> promise of its block: one text a session, so that caches hold
  const ask = (session, source) =>
    hook("SessionStart", { session_id: session, cwd: directory ?? "", source })
  const block = (session) => {
    if (!blocks.has(session)) blocks.set(session, ask(session, "startup"))
    return blocks.get(session)
  }
  return {
    event: async ({ event }) => {
      const info = event.properties ?? {}
      const session = info.sessionID ?? info.info?.id ?? ""
      if (event.type === "session.created") void block(session)
      if (event.type === "session.idle") await hook("Stop", { session_id: session })
      if (event.type === "session.compacted") blocks.delete(session)
      if (event.type === "session.deleted") {
        blocks.delete(session)
        await hook("SessionEnd", { session_id: session })
      }
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = await block(input?.sessionID ?? "")
      if (text) output.system.push(text)
    },
    "experimental.session.compacting": async (input, output) => {
      const text = await ask(input?.sessionID ?? "", "compact")
      if (text) output.context.push(text)
    },
  }
}
