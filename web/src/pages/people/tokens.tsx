/* Access tokens: for programs that act as a person. The text of one is shown once, when it is made. */
import { useState } from "preact/hooks";
import { call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { isWhole, limitOf, partOf } from "../../state/part";
import { me } from "../../state/session";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Copy } from "../../ui/words/copy";
import { Cut } from "../../ui/table/cut";
import { FormDialog } from "../../ui/talk/dialog";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name, shown } from "../../ui/words/name";
import { ago, full } from "../../ui/words/time";
import { Problem } from "../problem";
import { askUsers, calledBy, LIVE_MS } from "./people_data";

type Token = Messages["tokens.v1.TokenInfo"];
const DAYS_FIRST = 30;

/* Whose it is: an administrator makes others' too, as for a program that acts as a user of its own. */
function Owner({ id, set }: { id: number; set: (id: number) => void }) {
    const users = useLive("users", "", (signal) => askUsers(true, signal), () => null).data?.rows ?? [], mine = me.value?.id;
    return <label>Of <select value={id} onChange={(e) => set(Number(e.currentTarget.value))}>
        <option value={mine}>yourself</option>{users.filter((u) => u.active && u.id !== mine).map((u) => <option key={u.id} value={u.id}>{shown(calledBy(u))}</option>)}</select></label>;
}

function NewToken({ close, made }: { close: () => void; made: (text: string) => void }) {
    const [description, setDescription] = useState(""), [days, setDays] = useState(DAYS_FIRST), [userId, setUser] = useState(me.value?.id ?? 0), isMine = userId === me.value?.id;
    const save = async () => made((await call("POST /api/v1/tokens", { body: { description, lifespan: `${days * 24}h`, ...(isMine ? {} : { userId }) } })).token);
    return <FormDialog title="New token" button="Create" save={save} close={close}>
        <label>What it is for <input value={description} required onInput={(e) => setDescription(e.currentTarget.value)} /></label>
        <label>Good for, in days <input type="number" min={1} value={days} required onInput={(e) => setDays(Number(e.currentTarget.value))} /></label>
        {may("cluster") && <Owner id={userId} set={setUser} />}
        <p class="soft">It may all that {isMine ? "you may" : "they may"}.</p>
    </FormDialog>;
}

function EditToken({ token, close, again }: { token: Token; close: () => void; again: () => void }) {
    const [description, setDescription] = useState(token.description);
    const save = async () => {
        await call("PATCH /api/v1/tokens/{tokenId}", { path: { tokenId: token.id }, body: { description } });
        again();
    };
    return <FormDialog title={`Edit token ${token.id}`} button="Save" save={save} close={close}>
        <label>What it is for <input value={description} required onInput={(e) => setDescription(e.currentTarget.value)} /></label>
    </FormDialog>;
}

/* There is no second look at it. */
function Made({ text, done }: { text: string; done: () => void }) {
    return <section class="why" aria-label="The new token"><p>It is shown this once; whoever has it acts as its owner.</p><p><code>{text}</code></p>
        <div class="row"><Copy text={text} /><button type="button" onClick={done}>I have kept it</button></div></section>;
}

async function revoke(t: Token, again: () => void): Promise<void> {
    if (!await confirm(`Revoke the token “${shown(t.description)}” of ${shown(t.username)}? What uses it is refused from then on.`, "Revoke", `det token revoke ${t.id}`)) return;
    await attempt("Not revoked", () => call("PATCH /api/v1/tokens/{tokenId}", { path: { tokenId: t.id }, body: { setRevoked: true } }), "It is revoked.");
    again();
}

const stateOf = (t: Token): string => (t.revokedAt ? "revoked" : t.active ? "good" : "over");

export function TokensPage() {
    const [isAll, setAll] = useState(false), [isMaking, setMaking] = useState(false), [editing, setEditing] = useState<Token | null>(null), [text, setText] = useState("");
    const live = useLive("tokens", `${isAll} ${isWhole()}`, (signal) => call("GET /api/v1/tokens", { query: { showInactive: isAll, orderBy: "ORDER_BY_DESC", limit: limitOf(isWhole()) }, signal }), () => LIVE_MS);
    const tokens = live.data?.tokenInfo ?? [], part = live.data && partOf(tokens, live.data.pagination);
    return <>
        <div class="head"><h1>Tokens</h1><span class="soft">{count(part?.total ?? 0, "token")}</span>
            <label class="quiet"><input type="checkbox" checked={isAll} onChange={(e) => setAll(e.currentTarget.checked)} /> those that ended, too</label>
            <span class="row push"><button type="button" title="det token create" onClick={() => setMaking(true)}>New token…</button></span></div>
        {text && <Made text={text} done={() => setText("")} />}
        <Problem error={live.error} what="The tokens" />
        <Cut part={part} one="token" />
        {live.data && <Grid hasFile name="Tokens" rows={tokens} keyOf={(t) => t.id} none="There is no token." columns={[
            { head: "what it is for", cell: (t) => <Name text={t.description || "not said"} /> }, { head: "of", cell: (t) => <Name text={t.username} /> },
            { head: "state", cell: stateOf }, { head: "made", cell: (t) => <span title={full(t.createdAt)}>{ago(t.createdAt, Date.now())}</span> },
            { head: "used last", cell: (t) => (t.lastUsedAt ? <span title={full(t.lastUsedAt)}>{ago(t.lastUsedAt, Date.now())}</span> : "never") }, { head: "good until", cell: (t) => full(t.expiry) },
            { head: "", cell: (t) => stateOf(t) === "good" && <><button type="button" onClick={() => setEditing(t)}>Edit…</button><button type="button" onClick={() => void revoke(t, live.again)}>Revoke</button></> },
        ]} />}
        {editing && <EditToken token={editing} close={() => setEditing(null)} again={live.again} />}
        {isMaking && <NewToken close={() => setMaking(false)} made={(t) => { setText(t); live.again(); }} />}
    </>;
}
