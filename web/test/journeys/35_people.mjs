// A user is made, renamed, given a role through a group, deactivated; a token is made, used and revoked. Names are text; who may not is told.
import { api, check, isAnswer, pictures, signIn, until, url } from "./harness.mjs";

const EVIL = "<img src=x onerror=alert(1)>\u202eevil", NAME = "ada.people", PASSWORD = "a long enough word";

async function users(page) {
    await page.keyboard.press("g");
    await page.keyboard.press("u");
    await page.getByRole("heading", { name: "Users" }).waitFor();
    await page.getByRole("button", { name: "New user…" }).click();
    const dialog = page.getByRole("dialog", { name: "New user" });
    await dialog.getByLabel("Username").fill("a/b");
    await dialog.getByLabel("Shown as").fill(EVIL);
    await dialog.getByLabel("Password").fill(PASSWORD);
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("username: 2 to").waitFor(); // the master's sentence; what was typed stays
    check(await dialog.getByLabel("Shown as").inputValue() === EVIL, "what was typed is gone");
    await pictures(page, "users-new");
    await dialog.getByLabel("Username").fill(NAME);
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: NAME });
    await row.getByText("<img src=x onerror=alert(1)>").waitFor();
    await pictures(page, "users");
    return row;
}

async function roles(page) {
    await page.getByRole("link", { name: "Groups" }).click();
    await page.getByRole("button", { name: "New group…" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("night shift");
    await page.getByRole("dialog").getByLabel(NAME).check();
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByRole("row", { name: "night shift" }).getByText(NAME).waitFor();
    await pictures(page, "groups");
    await page.getByRole("link", { name: "Roles" }).click();
    await page.getByRole("button", { name: "Give a role…" }).click();
    const dialog = page.getByRole("dialog", { name: "Give a role" });
    await dialog.getByRole("combobox", { name: "Role" }).selectOption({ label: "Viewer" });
    await dialog.getByRole("combobox", { name: "To" }).selectOption({ label: "group night shift" });
    await pictures(page, "roles-give");
    await dialog.getByRole("button", { name: "Give", exact: true }).click();
    const given = page.getByRole("table", { name: "Roles given" }).getByRole("row", { name: "night shift" });
    await given.getByText("the whole cluster").waitFor();
    await pictures(page, "roles");
    await given.getByRole("button", { name: "Take away" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Take away" }).click();
    await given.waitFor({ state: "detached" });
}

/* They see all, and no button that the master would refuse but those of what is their own. */
async function asNobody(stranger) {
    const other = await stranger();
    await other.goto(`${url}/det/users`);
    await signIn(other, NAME, PASSWORD);
    await other.getByText("You may change what you are called and your password; all else takes an administrator.").waitFor();
    await other.getByRole("row", { name: NAME }).getByRole("button", { name: "Password…" }).waitFor();
    check(await other.getByRole("button", { name: "Edit…" }).count() === 1, "others' names are theirs to change");
    await pictures(other, "users-refused");
    return other;
}

async function tokens(page) {
    await page.getByRole("link", { name: "Tokens" }).click();
    await page.getByRole("button", { name: "New token…" }).click();
    await page.getByRole("dialog").getByLabel("What it is for").fill(EVIL);
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    const made = page.getByRole("region", { name: "The new token" }), text = await made.locator("code").innerText();
    const asks = () => fetch(`${url}/api/v1/me`, { headers: { Authorization: `Bearer ${text}` } }).then((r) => r.status);
    check(await asks() === 200, "the token is not taken");
    await pictures(page, "tokens-made");
    await made.getByRole("button", { name: "I have kept it" }).click();
    const row = page.getByRole("row", { name: "<img src=x onerror=alert(1)>" });
    await row.getByRole("button", { name: "Edit…" }).click();
    await page.getByRole("dialog").getByLabel("What it is for").fill(`${EVIL}, now for another`);
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await row.getByText(", now for another").waitFor();
    check(await asks() === 200, "another description ended it");
    await row.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await row.waitFor({ state: "detached" });
    check(await asks() === 401, "the token is taken still");
    await page.getByLabel("those that ended, too").check();
    await row.getByText("revoked").waitFor();
    await pictures(page, "tokens");
}

/* A program acts as a user of its own: an administrator makes its token. */
async function tokenOfAnother(page) {
    await api("POST", "/users", { user: { username: "robot", admin: false, active: true } });
    await page.getByRole("button", { name: "New token…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("What it is for").fill("a program");
    await dialog.getByText("It may all that you may.").waitFor();
    await dialog.getByRole("combobox", { name: "Of" }).selectOption({ label: "robot" });
    await dialog.getByText("It may all that they may.").waitFor();
    await pictures(page, "token-new");
    await dialog.getByRole("button", { name: "Create" }).click();
    const text = await page.getByRole("region", { name: "The new token" }).locator("code").innerText();
    const { user } = await (await fetch(`${url}/api/v1/me`, { headers: { Authorization: `Bearer ${text}` } })).json();
    check(user.username === "robot", JSON.stringify(user));
    await page.getByRole("row", { name: "a program" }).getByText("robot").waitFor();
}

export default async function ({ page, stranger }) {
    page.mayFail = [isAnswer(400, "POST /api/v1/users")];
    const row = await users(page);
    await roles(page);
    const other = await asNobody(stranger);
    await tokens(page);
    await tokenOfAnother(page);
    await page.goto(`${url}/det/admin/user-management`); // an old link
    await row.getByRole("button", { name: "Deactivate" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Deactivate" }).click();
    await row.getByText("deactivated").waitFor();
    await other.reload();
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    await other.context().close();
    const id = (await api("GET", `/users/${NAME}/by-username`)).user.id;
    check((await until(async () => (await api("GET", `/users/${id}`)).user, "them")).active === false, "still active");
    check(await page.locator("main :is(img, script)").count() === 0, "a name became an element");
}
