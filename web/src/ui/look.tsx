/* Said where the buttons are left out that the master would refuse: what takes whom. */
export function OnlyLook({ what, who }: { what: string; who: string }) {
    return <p class="soft" role="note">You may look at {what}; to change {what === "them" ? "them" : "it"} takes {who}.</p>;
}

export const OWNER = "the owner, an administrator or a role in the workspace", ADMINISTRATOR = "an administrator";
