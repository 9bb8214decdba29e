// The live connection: text messages by kind, binary snapshots of positions, and reconnecting with growing patience.

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
const NOT_LOGGED_IN = [4401, 4403];
const TOO_MANY = 4429; // pages are open already: trying again and again would not help

export class Live extends EventTarget {
  #socket = null;
  #pause = FIRST_PAUSE_MS;
  #timer = 0;
  #wanted = false;
  #watched = null;

  start() {
    this.#wanted = true;
    this.#connect();
  }

  stop() {
    this.#wanted = false;
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#socket = null;
  }

  /** Ask for this client's own view once a second; null for nobody's. */
  watch(client) {
    this.#watched = client;
    this.#say({ watch: client });
  }

  pause(paused) {
    this.#say({ pause: paused });
  }

  #say(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #connect() {
    const address = new URL("live", document.baseURI);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = (this.#socket = new WebSocket(address));
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      this.#pause = FIRST_PAUSE_MS;
      if (this.#watched !== null) this.#say({ watch: this.#watched });
      if (document.hidden) this.#say({ pause: true });
      this.#tell("open");
    });
    socket.addEventListener("message", ({ data }) => {
      if (typeof data !== "string") return this.#tell("positions", data);
      // What happened within one period comes together.
      for (const message of [JSON.parse(data)].flat()) this.#tell(message.kind, message);
      return undefined;
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (socket !== this.#socket || !this.#wanted) return;
      if (NOT_LOGGED_IN.includes(code)) {
        this.stop();
        this.#tell("refused");
        return;
      }
      if (code === TOO_MANY) {
        this.stop();
        this.#tell("full", reason);
        return;
      }
      this.#tell("lost", { retryMs: this.#pause });
      this.#timer = setTimeout(() => this.#connect(), this.#pause);
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
    });
  }

  #tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}
