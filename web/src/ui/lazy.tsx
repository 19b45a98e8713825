/* A page, or a part of one, that comes when it is first opened: who looks at experiments need not fetch it. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

export function lazy<P extends object>(load: () => Promise<FunctionComponent<P>>): FunctionComponent<P> {
    let came: FunctionComponent<P> | null = null;
    return function Lazy(props: P) {
        const [Found, setFound] = useState(() => came), [isLost, setLost] = useState(false);
        useEffect(() => {
            if (!Found) load().then((p) => setFound(() => (came = p)), () => setLost(true));
        }, []);
        if (Found) return <Found {...props} />;
        if (isLost) return <p class="error" role="alert">This part did not come. <button type="button" onClick={() => location.reload()}>Load the page again</button></p>;
        return <p class="soft">Loading…</p>;
    };
}
