// Who is looking: the log-in form, what it says when it is refused, and logging out.

import { get, post } from "./api.js";
import { byId, h, show } from "./dom.js";

export async function whoami() {
  return get("api/me");
}

/** Show the form, or say why it would not help; `entered` is called when somebody may see. */
export function askForLogin(me, entered) {
  const root = document.documentElement;
  const form = byId("login-form");
  const problem = byId("login-problem");
  const forbidden = Boolean(me.user) && !me.may_see;
  root.dataset.state = forbidden ? "forbidden" : "login";
  show(byId("gate"), true);
  show(form, !forbidden);
  byId("gate-text").textContent = forbidden
    ? `You are logged in as ${me.user}, who may not see this dashboard: it needs the right to “plans”.`
    : "Log in as somebody who has the right to “plans”.";
  const other = h("button", { type: "button", class: "primary", click: () => logOut() }, "Log in as somebody else");
  byId("gate-actions").replaceChildren(...(forbidden ? [other] : []));
  problem.textContent = "";
  form.onsubmit = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    byId("login-send").disabled = true;
    try {
      await post("login", { user: byId("login-user").value, password: byId("login-password").value });
      byId("login-password").value = "";
      const now = await whoami();
      if (now.may_see) {
        show(byId("gate"), false);
        entered(now);
      } else {
        askForLogin(now, entered);
      }
    } catch (refusal) {
      problem.textContent = refusal.status === 401 ? "User or password is wrong." : refusal.message;
      byId("login-password").select();
    }
    byId("login-send").disabled = false;
  };
  if (!forbidden) byId("login-user").focus();
}

export async function logOut() {
  await post("logout");
  location.reload();
}
