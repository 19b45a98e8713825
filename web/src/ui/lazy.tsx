/* A page that comes when it is first opened: who looks at experiments need not fetch it. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

type Variables = Record<string, string>;
type Page = FunctionComponent<Variables>;

export function lazy(load: () => Promise<Page>): Page {
    let came: Page | null = null;
    return function Lazy(variables: Variables) {
        const [Found, setFound] = useState(() => came), [isLost, setLost] = useState(false);
        useEffect(() => {
            if (!Found) load().then((p) => setFound(() => (came = p)), () => setLost(true));
        }, []);
        if (Found) return <Found {...variables} />;
        if (isLost) return <p class="error" role="alert">This page did not come. <button type="button" onClick={() => location.reload()}>Load it again</button></p>;
        return <p class="soft">Loading…</p>;
    };
}
