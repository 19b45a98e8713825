import assert from "node:assert/strict";
import { test } from "node:test";
import { compareQuery, compareView, differences, settingsOf, SIDES_MOST } from "../../../src/pages/compare/data";
import { askPages, limitOf, partOf, wholeAddress } from "../../../src/state/part";
import { changesOf, isOurs, viewsOf, type View } from "../../../src/state/views";
import { Cut, cutText } from "../../../src/ui/table/cut";

test("what is compared is its address and back", () => {
    const v = compareView("?e=3,1&t=9,7&all=1&m=validation.accuracy&y=log");
    assert.deepEqual([v.experiments, v.trials, v.isWhole, v.chart.metric, v.chart.logY], [[3, 1], [9, 7], true, "validation.accuracy", true]);
    assert.deepEqual(compareView(compareQuery(v)), v);
    assert.equal(compareQuery(compareView("?e=-1,x&t=0&all=yes")), "");
    const many = Array.from({ length: 50 }, (_, i) => i + 1).join(",");
    assert.equal(compareView(`?e=1,2&t=${many}`).trials.length, SIDES_MOST - 2);
});

test("what differs comes first, also what one side lacks", () => {
    const of = differences([{ a: 1, b: "x", z: 2 }, { a: 1, b: "y" }]);
    assert.deepEqual(of.map((d) => [d.name, d.differs]), [["b", true], ["z", true], ["a", false]]);
    assert.deepEqual(of[1]!.values, [2, undefined]);
    assert.deepEqual(differences([{ a: 1 }, { a: "1" }])[0]!.differs, true);
    assert.deepEqual(differences([]), []);
    assert.deepEqual({ ...settingsOf({ name: "x", hyperparameters: { lr: 1 }, searcher: { name: "single" } }) }, { "searcher.name": "single" });
});

test("views lead to pages of ours only", () => {
    const addresses = ["/det/experiments?search=a", "https://elsewhere.invalid", "//x/det/", "javascript:0", "", "/det//x", "/det/views/7"];
    assert.deepEqual(addresses.map(isOurs), [true, false, false, false, false, false, false]);
    assert.deepEqual(["/det/../x", "/det/%2e%2e/x", "/det/a/../../det/views/1", "/det/.//x", "/det/a/../b"].map(isOurs), [false, false, false, false, true]);
    const view = (id: number, userId: number, address: string): View => ({ id, name: "v", address, userId, username: "u", workspaceId: 1, workspaceName: "w" });
    const { own, shown, more } = viewsOf([view(1, 7, "/det/a"), view(2, 8, "/det/b"), view(3, 8, "//b")], 7, 10);
    assert.deepEqual([own.map((v) => v.id), shown.map((v) => v.id), more], [[1], [2], 7]);
    assert.deepEqual(changesOf(view(1, 7, "/det/a"), { name: "v", address: "/det/b", workspaceId: 1 }), { address: "/det/b" });
    assert.deepEqual(changesOf(view(1, 7, "/det/a"), { workspaceId: 0 }), { workspaceId: 0 });
});

test("a list that is cut says so, and where all of it is; one that is whole says nothing", () => {
    const part = partOf(Array(500).fill(0), { total: 1204 });
    assert.equal(cutText(part, "workspace"), "The first 500 of 1,204 workspaces are shown.");
    assert.deepEqual([cutText(partOf([1, 2], { total: 2 }), "user"), cutText(partOf([1, 2], null), "user"), cutText(partOf([], { total: 0 }), "user")], ["", "", ""]);
    assert.equal(partOf([1, 2], { total: 1 }).total, 2); // one was made just now
    assert.deepEqual([limitOf(false), limitOf(true)], [500, -1]);
    assert.equal(wholeAddress("/det/users", new URLSearchParams("tab=groups&x=%26")), "/det/users?tab=groups&x=%26&all=1");
    assert.equal(wholeAddress("/det/users", new URLSearchParams("all=0")), "/det/users?all=1");
    assert.equal(Cut({ part: null, one: "user" }), null);
    const [text, , link] = (Cut({ part, one: "user", href: "/det/users?all=1" }) as unknown as { props: { children: [string, string, { props: { href: string; children: string } }] } }).props.children;
    assert.deepEqual([text, link.props.href, link.props.children], ["The first 500 of 1,204 users are shown.", "/det/users?all=1", "The list of all users"]);
});

test("where the master gives no more than a page, all of it is asked for page by page", async () => {
    const all = Array.from({ length: 1204 }, (_, i) => i), asked: number[] = [];
    const ask = async ({ offset, limit }: { offset: number; limit: number }) => { asked.push(offset); return partOf(all.slice(offset, offset + limit), { total: all.length }); };
    assert.deepEqual([(await askPages(true, ask)).rows, asked.splice(0)], [all, [0, 500, 1000]]);
    const first = await askPages(false, ask);
    assert.deepEqual([first.rows.length, first.total, asked], [500, 1204, [0]]);
    assert.deepEqual(await askPages(true, async () => ({ rows: [], total: 9 })), { rows: [], total: 9 }); // they were deleted meanwhile
});

test("a registry's secrets are no settings that are shown or saved", () => {
    const of = (password: string) => settingsOf({ environment: { image: "i", registry_auth: { username: "ada", password, identitytoken: password } } });
    assert.deepEqual({ ...of("halibut") }, { "environment.image": "i", "environment.registry_auth.username": "ada", "environment.registry_auth.password": "••••••", "environment.registry_auth.identitytoken": "••••••" });
    assert.equal(JSON.stringify(differences([of("halibut"), of("plaice")])).match(/halibut|plaice/), null);
});
