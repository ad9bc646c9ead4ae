// Browsers start no workers for pages that are opened from a folder (file://). There, what the worker of the search
// would do is done in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.receive(data)
      const script = inside.document.createElement("script")
      script.onload = () => this.open()
      script.onerror = () => this.onerror?.(new Event("error", { cancelable: true }))
      script.src = new URL(url, document.baseURI).href
      inside.document.head.append(script)
    }
    open() {
      const waiting = this.waiting
      this.waiting = null
      waiting.forEach(data => this.postMessage(data))
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }
    receive(data) {
      const event = new MessageEvent("message", { data })
      setTimeout(() => { this.onmessage?.(event); this.dispatchEvent(event) })
    }
    terminate() {
      this.frame.remove()
    }
  }
}
