/* The registry: models, each a name for checkpoints that are good for something. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { useLive } from "../../state/live";
import { maySomewhere } from "../../state/may";
import { isWhole } from "../../state/part";
import { query, setQuery } from "../../state/router";
import { Cut } from "../../ui/table/cut";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name } from "../../ui/words/name";
import { ago, full } from "../../ui/words/time";
import { Problem } from "../problem";
import { ModelActions } from "./actions";
import { alsoAsked, askModels, LIVE_MS, modelAddress, modelsView, SORT_NAMES } from "./data";
import { NewModel } from "./edit";

const NO_MORE = { description: null, label: null, tags: null, owner: null, users: null, workspace: null };

export function ModelsPage() {
    const view = modelsView(query.value), { search, archived } = view, also = alsoAsked(view), [isMaking, setMaking] = useState(false);
    const live = useLive("models", `${JSON.stringify(view)} ${isWhole()}`, (signal) => askModels(view, isWhole(), signal), () => LIVE_MS), models = live.data?.rows ?? [];
    return <>
        <div class="head"><h1>Models</h1>
            <label class="quiet">Search <input type="search" value={search} onInput={(e) => setQuery({ search: e.currentTarget.value, name: null })} /></label>
            <label class="quiet"><input type="checkbox" checked={archived} onChange={(e) => setQuery({ archived: e.currentTarget.checked ? "too" : null })} /> archived ones, too</label>
            <label class="quiet">By <select value={view.sort} onChange={(e) => setQuery({ sort: e.currentTarget.value, sortKey: null, sortDesc: null })}>{SORT_NAMES.map((s) => <option key={s} value={s}>{s}</option>)}</select></label>
            {also.length > 0 && <span class="chip">{also.map((t) => <Fragment key={t}><Name text={t} />{" "}</Fragment>)}<button type="button" class="plain" aria-label="All others, too" onClick={() => setQuery(NO_MORE)}>×</button></span>}
            <span class="soft">{count(live.data?.total ?? 0, "model")}</span>
            <span class="row push">{maySomewhere("create") && <button type="button" title="det model create NAME" onClick={() => setMaking(true)}>New model…</button>}</span></div>
        <Problem error={live.error} what="The models" />
        <Cut part={live.data} one="model" />
        {live.data && <Grid hasFile name="Models" rows={models} keyOf={(m) => m.id} none={search || also.length ? "No model fits." : "There is no model yet: a checkpoint's Register… makes its first version."} columns={[
            { head: "model", cell: (m) => <a href={modelAddress(m.name)}><Name text={m.name} /></a> },
            { head: "description", cell: (m) => m.description && <Name text={m.description} /> },
            { head: "labels", cell: (m) => <span class="row">{m.labels.map((l) => <span key={l} class="chip"><Name text={l} /></span>)}</span> },
            { head: "versions", cell: (m) => m.numVersions }, { head: "owner", cell: (m) => <Name text={m.username} /> },
            { head: "changed", cell: (m) => <span title={full(m.lastUpdatedTime)}>{ago(m.lastUpdatedTime, Date.now())}</span> },
            { head: "", cell: (m) => <ModelActions m={m} again={live.again} gone={live.again} /> },
        ]} />}
        {isMaking && <NewModel close={() => setMaking(false)} />}
    </>;
}
