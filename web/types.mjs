// node types.mjs: makes src/api/types.gen.ts of proto/openapi.yaml: one type a message, one entry a route. A route or a
// property that changes there breaks the page's build, not a reader's page. And src/api/schema.gen.ts of the master's own table
// of a configuration's keys: what the editor completes.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const api = parse(readFileSync(here("../proto/openapi.yaml"), "utf8"));

const nameOf = (ref) => JSON.stringify(ref.split("/").pop());

// Names of the messages that a schema refers to, and those refer to.
function reach(schema, found = new Set()) {
    for (const [key, value] of Object.entries(schema ?? {})) {
        if (key === "$ref") {
            const name = value.split("/").pop();
            if (!found.has(name)) reach(api.components.schemas[name], found.add(name));
        } else if (typeof value === "object") reach(value, found);
    }
    return found;
}

const ops = Object.values(api.paths).flatMap((p) => Object.values(p)).filter((op) => op?.responses);
const answered = reach(ops.map((op) => op.responses));
const asked = reach(ops.map((op) => op.requestBody));
// Whether the message that is being written is only ever sent: what it must have is told by `required` then, and in an
// answer, which holds all that is not marked x-omitted.
let isSent = false;

function objectType(schema) {
    const needed = new Set(schema.required ?? []);
    const isOptional = (key, value) => isSent ? !needed.has(key) : value["x-omitted"];
    const rows = Object.entries(schema.properties ?? {}).map(
        ([key, value]) => `${JSON.stringify(key)}${isOptional(key, value) ? "?" : ""}: ${typeOf(value)}`);
    if (rows.length === 0) return schema.additionalProperties ? `Record<string, ${typeOf(schema.additionalProperties)}>` : "Record<string, unknown>";
    return `{ ${rows.join("; ")} }`;
}

function bareType(schema) {
    if (schema["x-double"]) return `number | "NaN" | "Infinity" | "-Infinity"`;
    if (schema.$ref) return `Messages[${nameOf(schema.$ref)}]`;
    if (schema.allOf) return schema.allOf.map(typeOf).join(" & ");
    if (schema.oneOf || schema.anyOf) return (schema.oneOf ?? schema.anyOf).map(typeOf).join(" | ");
    if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
    switch (schema.type) {
    case "array": return `Array<${typeOf(schema.items ?? {})}>`;
    case "integer": case "number": return "number";
    case "string": return "string";
    case "boolean": return "boolean";
    case "object": return objectType(schema);
    default: return "unknown";
    }
}

function typeOf(schema) {
    const type = bareType(schema);
    return schema.nullable ? `(${type}) | null` : type;
}

function routeType(op) {
    const query = (op.parameters ?? []).filter((p) => p.in === "query");
    const json = (holder) => holder?.content?.["application/json"]?.schema;
    const body = json(op.requestBody), answer = json(op.responses?.["200"]);
    return `{ query: { ${query.map((p) => `${JSON.stringify(p.name)}?: ${typeOf(p.schema)}`).join("; ")} }; ` +
        `body: ${body ? typeOf(body) : "undefined"}; answer: ${answer ? typeOf(answer) : "unknown"} }`;
}

function messageType(name, schema) {
    isSent = asked.has(name) && !answered.has(name);
    const type = typeOf(schema);
    isSent = false;
    return type;
}

function* routes() {
    for (const [path, ops] of Object.entries(api.paths))
        for (const [method, op] of Object.entries(ops))
            if (["get", "post", "put", "patch", "delete"].includes(method))
                yield `    ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: ${routeType(op)};`;
}

writeFileSync(here("src/api/types.gen.ts"), `// Made by types.mjs of proto/openapi.yaml.
export interface Messages {
${Object.entries(api.components.schemas).map(([name, s]) => `    ${JSON.stringify(name)}: ${messageType(name, s)};`).join("\n")}
}
export interface Routes {
${[...routes()].join("\n")}
}
`);

// {STR("searcher.metric", ...)}, {ENUM("searcher.mode", ..., "a b c")} or {.path = "...", .type = ...}: the rows of the table.
function* keys(text) {
    const table = text.slice(text.indexOf("expconf_keys[] = {")), end = table.indexOf("\n};");
    const row = /\{(?:([A-Z]+)\("([^"]+)"|\.path = "([^"]+)")/g, rows = [...table.slice(0, end).matchAll(row)];
    for (const [i, m] of rows.entries()) {
        const rest = table.slice(m.index + m[0].length, rows[i + 1]?.index ?? end), kind = m[1] ?? "";
        const texts = [...rest.replace(/EXAMPLE\([\s\S]*/, "").matchAll(/(?:"(?:[^"\\]|\\.)*"\s*)+/g)].map((t) => [...t[0].matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((x) => x[1]).join(""));
        const words = kind === "BOOL" || /EXPCONF_BOOL/.test(rest) ? ["true", "false"] : kind === "ENUM" ? texts[/^, NULL/.test(rest) ? 0 : 1].split(" ") : [];
        yield { path: m[2] ?? m[3], words, isIdle: /IDLE\(/.test(rest) };
    }
}

const schema = [...keys(readFileSync(here("../proto/config/expconf_schema.c"), "utf8"))];
writeFileSync(here("src/api/schema.gen.ts"), `// Made by types.mjs of proto/config/expconf_schema.c.
export interface SchemaKey { path: string; words: string[]; isIdle: boolean }
export const SCHEMA: SchemaKey[] = ${JSON.stringify(schema, null, 1)};
`);
