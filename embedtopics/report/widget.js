// The explorer in a notebook: a frame, whose selected rows are those of the model (uint32).
const read = ({ buffer, byteOffset, byteLength }) =>
  new Uint32Array(buffer.slice(byteOffset, byteOffset + byteLength));
const isEqual = (one, other) => one.length === other.length && one.every((row, i) => row === other[i]);

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "Explorer";
  frame.setAttribute("sandbox", "allow-scripts allow-downloads"); // no access to the notebook
  frame.allow = "clipboard-write";
  frame.style.cssText = `border: 0; width: 100%; height: ${model.get("height")}px`;
  frame.srcdoc = model.get("page");

  let shown = new Uint32Array(); // what the frame has selected
  const send = () => {
    const rows = read(model.get("rows"));
    if (isEqual(rows, shown)) return; // an echo of the frame's selection
    shown = rows;
    frame.contentWindow?.postMessage({ embedtopics: "select", rows }, "*");
  };
  const receive = ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    if (data?.embedtopics === "ready") {
      send();
      model.on("change:rows", send);
    } else if (data?.embedtopics === "selection" && data.rows instanceof Uint32Array) {
      shown = data.rows;
      model.set("rows", new DataView(shown.slice().buffer));
      model.save_changes();
    }
  };
  window.addEventListener("message", receive);
  el.append(frame);
  return () => {
    window.removeEventListener("message", receive);
    model.off("change:rows", send);
  };
}
export default { render };
