// Browsers refuse workers in pages that are opened as files: the search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const base = new URL(address, location);
      const frame = Object.assign(document.createElement("iframe"), { hidden: true });
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const load = (name) =>
        new Promise((done, failed) => {
          const script = this.inside.document.createElement("script");
          Object.assign(script, { src: new URL(name, base), onload: done, onerror: failed });
          this.inside.document.body.append(script);
        });
      this.inside.importScripts = (...names) =>
        names.reduce((before, name) => before.then(() => load(name)), Promise.resolve());
      this.inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(base);
    }

    postMessage(data) {
      this.ready.then(() =>
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })),
      );
    }
  };
}
