/* All that is only needed where YAML is written. */
export { startEditor, type Editor } from "./yaml_editor";
export { placeOf, type Place } from "./yaml_place";
