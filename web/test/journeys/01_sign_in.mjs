// A link of one use signs in; the empty list says how to begin and shows a grid by itself until it ends; used again the link says so.
import { api, check, create, exampleConfig, pictures, seemly, url } from "./harness.mjs";

export default async function ({ page, stranger }) {
    const { path } = await api("POST", "/auth/link", {}), { total } = (await api("GET", "/experiments?limit=1")).pagination;
    const guest = await stranger();
    await guest.goto(url + path);
    await guest.getByRole("heading", { name: "Experiments" }).waitFor();
    check(!guest.url().includes("t="), `the token is still in ${guest.url()}`);
    if (!total) {
        await guest.getByText("det experiment create CONFIG.yaml FOLDER").waitFor();
        await pictures(guest, "experiments-none");
    }
    const id = await create(exampleConfig("digits/grid.yaml"), "digits"), row = guest.locator(`tr[data-experiment="${id}"]`);
    await row.getByText("running").waitFor();
    await row.getByRole("progressbar").waitFor();
    await pictures(guest, "experiments-running");
    await row.getByText("completed").waitFor();
    const { experiment } = await api("GET", `/experiments/${id}`);
    check((await row.innerText()).includes(experiment.name), await row.innerText());
    check(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.test(await row.getByText(/just now|min ago/).first().getAttribute("title")), "no exact time");
    await seemly(guest);
    await guest.context().close();
    const late = await stranger();
    await late.goto(url + path);
    await late.getByRole("alert").getByText("this link signs nobody in any more").waitFor();
    await pictures(late, "sign-in-used-link");
    await late.context().close();
    await page.goto(url + path);
    await page.getByText("this link signs nobody in any more").waitFor();
    await page.getByRole("heading", { name: "Experiments" }).waitFor();
}
