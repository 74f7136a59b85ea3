// node run.mjs module.wasm module.profraw: runs the module, and writes its profile to a file.
import { readFileSync, writeFileSync } from "node:fs";

const [, , module, output] = process.argv;
const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { memory, work, profile, profile_size } = instance.exports;
if (work(20) !== 196) throw new Error("the module does not do what it should");
const start = profile();
if (start === 0) throw new Error("there is no profile");
writeFileSync(output, new Uint8Array(memory.buffer, start, profile_size()));
