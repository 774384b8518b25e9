// A client of another make than our server: the TypeScript SDK. In: the command to start, as arguments; the steps to
// take, as JSON on standard input. Out: one JSON line a step.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "memoryd-test", version: "1" });
await client.connect(transport);
const tell = (value) => console.log(JSON.stringify(value));
tell({ server: client.getServerVersion(), capabilities: client.getServerCapabilities() });
for await (const line of createInterface({ input: process.stdin })) {
  const [step, ...given] = JSON.parse(line);
  try {
    tell(await client[step](...given));
  } catch (error) {
    tell({ error: String(error.message), code: error.code });
  }
}
await client.close();
