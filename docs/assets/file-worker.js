/* Search runs in a worker, and browsers give none to pages that are read from the file system.
 * There an invisible frame does the work: it is told what a worker would be told, and what it says goes back to the page.
 * As with a worker, messages are copies, and arrive later, never in the midst of something else. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => {
          this.dispatchEvent(event);
          if (this.onmessage) this.onmessage(event);
        });
      };
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href);
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.deliver(data));
      };
      inside.document.head.append(script);
    }
    postMessage(data) {
      const copy = structuredClone(data);
      if (this.waiting) this.waiting.push(copy);
      else this.deliver(copy);
    }
    deliver(data) {
      const inside = this.frame.contentWindow;
      setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
