// node types.mjs: makes src/api/types.gen.ts of proto/openapi.yaml: one type a message, one entry a route. A route or a
// property that changes there breaks the page's build, not a reader's page.
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
