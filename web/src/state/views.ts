/* Addresses with a name, which the master keeps for their owner: a view is what is seen. */
import { signal } from "@preact/signals";
import { call } from "../api/client";

export interface View { name: string; address: string }

const PLACE = "page.views";
export const views = signal<View[]>([]);

/* Only pages of ours: nobody is led elsewhere by what is stored. */
const isOurs = (address: string): boolean => /^\/det\/(?!\/)/.test(address);

export function viewsOf(settings: { key: string; storagePath: string; value: string }[]): View[] {
    return settings.filter((s) => s.storagePath === PLACE && isOurs(s.value)).map((s) => ({ name: s.key, address: s.value }))
        .sort((a, b) => a.name.localeCompare(b.name));
}

export async function readViews(): Promise<void> {
    views.value = viewsOf((await call("GET /api/v1/users/setting")).settings);
}

async function write(name: string, address: string): Promise<void> {
    await call("POST /api/v1/users/setting", { body: { settings: [{ key: name, storagePath: PLACE, value: address }] } });
    await readViews();
}

/* One of the same name is replaced. */
export const keepView = (name: string, address: string): Promise<void> => write(name.trim(), address);
/* The master has no way to take one setting away: an empty one is none. */
export const dropView = (name: string): Promise<void> => write(name, "");
