/* Which page an address opens: the first row that fits. A page has its variables as props. */
import type { FunctionComponent } from "preact";
import { ExperimentsPage } from "./experiments";

type Variables = Record<string, string>;
export interface PageRoute {
    pattern: string;
    title: string;
    page: FunctionComponent<Variables>;
}

export const pageRoutes: PageRoute[] = [
    { pattern: "/det/experiments", title: "Experiments", page: ExperimentsPage },
];
/* What "/" and old links without a page of their own open. */
export const HOME = "/det/experiments";
