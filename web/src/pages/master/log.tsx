/* The master's own log: its newest lines, kept at the end while the reader is there. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { LEVELS } from "../../state/address";
import { useLive } from "../../state/live";
import { plain } from "../../ui/words/ansi";
import { Choices } from "../../ui/table/choices";
import { count } from "../../ui/words/format";
import { LogLines } from "../../ui/log/log_view";
import { asText } from "../../ui/log/loglines";
import { saveAs } from "../../ui/words/save";
import { Problem } from "../problem";
import { askLines, LINES, LIVE_MS } from "./data";

const NEAR_END = 4; // CSS pixels

export function MasterLog() {
    const live = useLive("master log", "", askLines, () => LIVE_MS), [search, setSearch] = useState(""), [levels, setLevels] = useState<string[]>([]);
    const box = useRef<HTMLDivElement>(null), [follow, setFollow] = useState(true), all = live.data ?? [];
    const found = all.filter((l) => (!levels.length || levels.includes(l.level)) && l.text.toLowerCase().includes(search.toLowerCase()));
    useLayoutEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [follow, found.at(-1)?.id, found.length]);
    const onScroll = () => setFollow(box.current!.scrollHeight - box.current!.scrollTop - box.current!.clientHeight < NEAR_END);
    return <div class="logs below-tabs">
        <div class="head"><label class="quiet">Search <input type="search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} /></label>
            <Choices name="Levels" summary={levels.join(", ").toLowerCase() || "all"} of={LEVELS.map((value) => ({ value: value as string, text: value.toLowerCase() }))} ticked={levels} set={setLevels} />
            <span class="soft" role="status">{found.length === LINES ? `the newest ${LINES} lines` : count(found.length, "line")}</span>
            <span class="row push"><button type="button" title="det master logs" onClick={() => saveAs("master.log", found.map((l) => asText(l, plain)).join(""), "text/plain")}>Download</button></span></div>
        <Problem error={live.error} what="The log" />
        <LogLines box={box} lines={found} marked={-1} begin={0} onScroll={onScroll} top="" bottom="" />
    </div>;
}
