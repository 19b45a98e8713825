/*
 * A password as it is sent (docs/contract/trial.md 5): SHA-512 in hex of a fixed salt and the password; an empty one stays empty.
 * Over plain HTTP to a host that is not this one, a browser has no crypto.subtle: then the master does it.
 */
const SALT = "GubPEmmotfiK9TMD6Zdw";

export const canHash = (): boolean => typeof crypto !== "undefined" && crypto.subtle !== undefined;

export async function hashed(password: string): Promise<string> {
    if (!password) return "";
    const bytes = await crypto.subtle.digest("SHA-512", new TextEncoder().encode(SALT + password));
    return [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/* A password as a request's part. */
export async function secretOf(password: string): Promise<{ password: string; isHashed: boolean }> {
    return canHash() ? { password: await hashed(password), isHashed: true } : { password, isHashed: false };
}
