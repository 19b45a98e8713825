/* Which page an address opens: the first row that fits. A page has its variables as props. */
import type { FunctionComponent } from "preact";
import { lazy } from "../ui/lazy";
import { ClusterPage } from "./cluster/cluster";
import { ComparePage } from "./compare/compare";
import { CreatePage } from "./create/create";
import { ExperimentPage } from "./experiment/experiment";
import { ExperimentsPage } from "./experiments/experiments";
import { LogsPage } from "./trial/logs";
import { OLD_PATTERNS, OldLink, SignOutPage } from "./old_links";
import { TrialPage } from "./trial/trial";
import { ViewPage } from "./view";

type Variables = Record<string, string>;
export interface PageRoute {
    pattern: string;
    title: string;
    page: FunctionComponent<Variables>;
}

const UsersPage = lazy<Variables>(async () => (await import("./people/users")).UsersPage);
const TokensPage = lazy<Variables>(async () => (await import("./people/tokens")).TokensPage);
const ModelsPage = lazy<Variables>(async () => (await import("./models/models")).ModelsPage);
const ModelPage = lazy<Variables>(async () => (await import("./models/model")).ModelPage);
const VersionPage = lazy<Variables>(async () => (await import("./models/version")).VersionPage);
const WorkspacesPage = lazy<Variables>(async () => (await import("./places/workspaces")).WorkspacesPage);
const WorkspacePage = lazy<Variables>(async () => (await import("./places/workspace")).WorkspacePage);
const ProjectPage = lazy<Variables>(async () => (await import("./places/project")).ProjectPage);
const TemplatesPage = lazy<Variables>(async () => (await import("./templates/templates")).TemplatesPage);
const WebhooksPage = lazy<Variables>(async () => (await import("./webhooks/webhooks")).WebhooksPage);
const MasterPage = lazy<Variables>(async () => (await import("./master/master")).MasterPage);

const UsePage = lazy<Variables>(async () => (await import("./cluster/use")).UsePage);

export const pageRoutes: PageRoute[] = [
    { pattern: "/det/experiments", title: "Experiments", page: ExperimentsPage },
    { pattern: "/det/experiments/new", title: "New experiment", page: CreatePage },
    { pattern: "/det/compare", title: "Side by side", page: ComparePage },
    { pattern: "/det/experiments/:id", title: "Experiment", page: ExperimentPage },
    { pattern: "/det/trials/:id", title: "Trial", page: TrialPage },
    { pattern: "/det/trials/:id/logs", title: "Log", page: LogsPage },
    { pattern: "/det/clusters", title: "Cluster", page: ClusterPage },
    { pattern: "/det/clusters/historical-usage", title: "Use over time", page: UsePage },
    { pattern: "/det/models", title: "Models", page: ModelsPage },
    { pattern: "/det/models/:name", title: "Model", page: ModelPage },
    { pattern: "/det/models/:name/versions/:version", title: "Version", page: VersionPage },
    { pattern: "/det/models/:name/versions/:version/:tab", title: "Version", page: VersionPage },
    { pattern: "/det/workspaces", title: "Workspaces", page: WorkspacesPage },
    { pattern: "/det/workspaces/:id", title: "Workspace", page: WorkspacePage },
    { pattern: "/det/workspaces/:id/:tab", title: "Workspace", page: WorkspacePage },
    { pattern: "/det/projects/:id", title: "Project", page: ProjectPage },
    { pattern: "/det/projects/:id/:tab", title: "Project", page: ProjectPage },
    { pattern: "/det/templates", title: "Templates", page: TemplatesPage },
    { pattern: "/det/users", title: "Users", page: UsersPage },
    { pattern: "/det/webhooks", title: "Webhooks", page: WebhooksPage },
    { pattern: "/det/master", title: "Master", page: MasterPage },
    { pattern: "/det/views/:id", title: "View", page: ViewPage },
    { pattern: "/det/tokens", title: "Tokens", page: TokensPage },
    { pattern: "/det/logout", title: "Sign out", page: SignOutPage },
    ...OLD_PATTERNS.map((pattern) => ({ pattern, title: "Moved", page: OldLink })),
];
/* What "/" and old links without a page of their own open. */
export const HOME = "/det/experiments";
