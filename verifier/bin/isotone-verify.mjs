#!/usr/bin/env node
import { command } from "../src/command.mjs";

process.exitCode = await command(process.argv.slice(2));
