/* The worker's own script: it does what it is asked, one after the other. */
import { WORK, type Asked } from "./table";

const here = self as unknown as Worker; // the types are those of a page

here.onmessage = ({ data: { id, what, of } }: MessageEvent<Asked>) => here.postMessage({ id, answer: WORK[what](of) });
