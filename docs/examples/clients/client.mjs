// A session of Tenuto from JavaScript: node client.mjs "first prompt" "second prompt" …
// Lines of JSON go in and out; docs/reference/stream-json.schema.json says what each looks like.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export class Tenuto {
  constructor(options = []) {
    const words = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", ...options];
    this.process = spawn("tenuto", words, { stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    this.ended = new Promise((resolve) => this.process.on("close", resolve));
  }

  // Send a prompt and yield its lines; the last one is of type "result".
  async *ask(text) {
    this.send({ type: "user", message: { role: "user", content: text } });
    for (;;) {
      const { value, done } = await this.lines.next();
      if (done) throw new Error(`tenuto ended with ${await this.ended}`);
      const line = JSON.parse(value);
      yield line;
      if (line.type === "result") return;
    }
  }

  // Stop what runs: its prompt ends with the result "error_interrupted".
  interrupt() {
    this.send({ type: "control_request", request: { subtype: "interrupt" } });
  }

  // No prompt comes any more: resolves to the exit code.
  close() {
    this.process.stdin.end();
    return this.ended;
  }

  send(message) {
    this.process.stdin.write(JSON.stringify(message) + "\n");
  }
}

const tenuto = new Tenuto(["--mode", "ask"]);
for (const prompt of process.argv.slice(2)) {
  for await (const line of tenuto.ask(prompt)) {
    if (line.type === "assistant")
      for (const block of line.message.content)
        if (block.type === "tool_use") console.log(`> ${block.name} ${JSON.stringify(block.input)}`);
    if (line.type === "result") console.log(line.is_error ? `${line.subtype}: ${line.error}` : line.result);
  }
}
process.exitCode = await tenuto.close();
