// The token of a secret link is behind the #, which browsers send nowhere.
import { at, send } from "/static/dom.js";

async function enter(token) {
  history.replaceState(null, "", "/enter");
  try {
    const { home } = await send("POST", "/session", { token });
    location.replace(home);
  } catch (error) {
    at("said").textContent = error.message;
  }
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(at("token").value.trim());
});
function enterByLink() {
  if (location.hash.length > 1) enter(decodeURIComponent(location.hash.slice(1)));
}

addEventListener("hashchange", enterByLink);  // the link, opened where this page is already
enterByLink();
