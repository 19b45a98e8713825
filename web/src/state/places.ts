/* The pages that are there from everywhere: beside each page, in the palette, by two keys. */
export interface Place {
    address: `/det/${string}`;
    title: string;
    keys: string;
    says: string;
    /* Who may not do this to the cluster is not led there. */
    takes?: "cluster";
}

export const PLACES: readonly Place[] = [
    { address: "/det/experiments", title: "Experiments", keys: "g e", says: "go to the experiments" },
    { address: "/det/clusters", title: "Cluster", keys: "g c", says: "go to the cluster" },
    { address: "/det/models", title: "Models", keys: "g m", says: "go to the models" },
    { address: "/det/workspaces", title: "Workspaces", keys: "g w", says: "go to the workspaces" },
    { address: "/det/templates", title: "Templates", keys: "g t", says: "go to the templates" },
    { address: "/det/users", title: "Users", keys: "g u", says: "go to users, groups and roles" },
    { address: "/det/tokens", title: "Tokens", keys: "g a", says: "go to the access tokens" },
    { address: "/det/webhooks", title: "Webhooks", keys: "g h", says: "go to the webhooks, where you may", takes: "cluster" },
    { address: "/det/master", title: "Master", keys: "g l", says: "go to the master: health, log, quotas, settings" },
];
