// node run.mjs [NAME...]: the journeys (NN_name.mjs) in order, on the master of $DET_TEST_URL; exit 1 where one failed.
import { readdirSync } from "node:fs";
import { run } from "./harness.mjs";

const here = new URL(".", import.meta.url).pathname;
const names = readdirSync(here).filter((f) => /^\d\d_.*\.mjs$/.test(f)).sort();
const wanted = process.argv.slice(2);
const journeys = [];
for (const f of names) if (!wanted.length || wanted.some((w) => f.includes(w))) journeys.push([f.replace(".mjs", ""), (await import(`./${f}`)).default]);
process.exitCode = await run(journeys) ? 1 : 0;
