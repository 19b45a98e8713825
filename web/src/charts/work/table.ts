/* What takes long of a large search, and so is done beside the page. */
import { collapsedAll } from "./collapse";
import { weighed } from "./importance";

export const WORK = { collapsedAll, weighed };

export type Work = typeof WORK;
export interface Asked { id: number; what: keyof Work; of: never }
