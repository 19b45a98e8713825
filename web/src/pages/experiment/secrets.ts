/* What a configuration holds that is not for everybody who looks over the reader's shoulder: how to sign in to a registry of images. */

export const SECRET = ["password", "auth", "identitytoken", "registrytoken"];
export const DOTS = "••••••";
type Tree = Record<string, unknown>;
const isTree = (v: unknown): v is Tree => typeof v === "object" && v !== null && !Array.isArray(v);
const at = (v: unknown, key: string): unknown => (isTree(v) ? v[key] : undefined);

/* What stands for one where the master hides it from who reads: it is no secret, and is shown as it is. */
const HIDDEN = "(hidden)";
const isSecret = (v: unknown): v is string => typeof v === "string" && v !== "" && v !== HIDDEN;

/* The longest first: one may be a part of another. */
export function secretsOf(config: unknown): string[] {
    const auth = at(at(config, "environment"), "registry_auth");
    return [...new Set(SECRET.map((key) => at(auth, key)).filter(isSecret))].sort((a, b) => b.length - a.length);
}

export function configWithoutSecrets(config: unknown): unknown {
    const environment = at(config, "environment"), auth = at(environment, "registry_auth");
    if (!isTree(config) || !isTree(environment) || !isTree(auth)) return config;
    const hidden = Object.fromEntries(Object.entries(auth).map(([key, v]) => [key, SECRET.includes(key) && isSecret(v) ? DOTS : v]));
    return { ...config, environment: { ...environment, registry_auth: hidden } };
}
