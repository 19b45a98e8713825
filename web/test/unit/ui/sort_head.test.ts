import assert from "node:assert/strict";
import { test } from "node:test";
import { SortHead } from "../../../src/ui/table/sort_head";

test("a head that may be cut says all of it when it is hovered over", () => {
    const titleOf = (title?: string) => (SortHead({ id: "m", sort: [], set: () => undefined, ...(title === undefined ? {} : { title }), children: "m" }) as { props: { children: { props: { title: string } } } }).props.children.props.title;
    assert.equal(titleOf("validation.accuracy_of_all_classes"), "validation.accuracy_of_all_classes\nSort by this; with shift: also by this");
    assert.equal(titleOf(), "Sort by this; with shift: also by this");
});
