// A wrong password and an unknown name are told alike, and too many tries in the master's words; what was typed as the name stays.
import { api, check, isAnswer, pictures, signIn, url } from "./harness.mjs";

const TRIES_MOST = 40;

export default async function ({ stranger }) {
    await api("POST", "/users", { user: { username: "forgetful", active: true, admin: false }, password: "Right-Horse-7" });
    const guest = await stranger(), alert = guest.getByRole("alert");
    guest.mayFail = [isAnswer(429, "POST /api/v1/auth/login")];
    await guest.goto(`${url}/det/experiments?search=kept`);
    for (const name of ["nobody", "forgetful"]) {
        await signIn(guest, name, "wrong");
        await alert.getByText("Incorrect username or password.").waitFor();
        check(await guest.getByLabel("Username").inputValue() === name, "the name is gone");
    }
    await pictures(guest, "sign-in-wrong");
    for (let i = 0; i < TRIES_MOST && !/Not signed in/.test(await alert.innerText()); i++) {
        const answer = guest.waitForResponse(/auth\/login/);
        await signIn(guest, "forgetful", `wrong ${i}`);
        await answer;
        await alert.getByText(/./).waitFor();
    }
    check(/Not signed in: .+/.test(await alert.innerText()), await alert.innerText());
    await pictures(guest, "sign-in-locked");
    await guest.context().close();
}
