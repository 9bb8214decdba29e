/* Search runs in a worker, and browsers give none to pages that are read from the file system.
 * There an invisible frame does the work: it is told what a worker would be told, and what it says goes back to the page. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = this.inside = frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inside.importScripts = (...urls) => {
        for (const each of urls) inside.document.write(`<script src="${each}"></` + "script>");
      };
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href);
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      inside.document.head.append(script);
      this.frame = frame;
    }
    postMessage(data) {
      if (this.waiting) {
        this.waiting.push(data);
        return;
      }
      const event = new this.inside.MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
