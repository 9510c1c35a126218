// The command: isotone-verify [--json] MODEL...

import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";

import { LIMITS } from "./limits.mjs";
import { BadFile, demand } from "./refusal.mjs";
import { describe, exitCode, verify } from "./report.mjs";

const HELP = `usage: isotone-verify [--json] MODEL...

Prove from the stored numbers alone, in exact rational arithmetic, what .isotone files guarantee.

  --json  print one line of JSON per file

Exit code 0 if every declared constraint holds, 1 if one does not, 2 if there is no verdict: the file
is unreadable, or holds what this program has no proof for. For several files, the largest.`;

/** Run the command; the exit code. */
export async function command(words) {
  const json = words.includes("--json"), paths = words.filter((word) => !word.startsWith("-"));
  const unknown = words.find((word) => word.startsWith("-") && word !== "--json");
  if (unknown !== undefined || paths.length === 0) {
    print(HELP);
    return unknown === "--help" || unknown === "-h" ? 0 : 2;
  }
  const codes = paths.map((path) => {
    const found = verifyFile(path);
    print(json ? JSON.stringify({ file: path, ...found }) : describe(path, found));
    return exitCode(found);
  });
  return Math.max(...codes);
}

function print(text) {
  writeSync(1, `${text}\n`);
}

/** What can be said of a file; one that cannot be read is a bad one. */
export function verifyFile(path) {
  try {
    return verify(readRegular(path));
  } catch (error) {
    if (error instanceof BadFile || typeof error.code === "string") {
      return { verdict: "BAD FILE", reason: error.message };
    }
    throw error;
  }
}

/** The bytes of a regular file of no more than a model's size; a pipe would make us wait. */
function readRegular(path) {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = fstatSync(file);
    demand(found.isFile(), "it is not a regular file");
    demand(found.size <= 8 + LIMITS.header[0] + LIMITS.bytes[0], "it is larger than any model");
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}
