/* What drawing needs of a canvas. Whoever draws with a pen draws on the screen and into a file (svg.ts) alike. */

type Used = "fillStyle" | "strokeStyle" | "lineWidth" | "lineJoin" | "globalAlpha" | "font" | "textAlign" | "textBaseline" | "save" | "restore" | "translate" |
    "beginPath" | "moveTo" | "lineTo" | "rect" | "arc" | "clip" | "stroke" | "setLineDash" | "fillRect" | "strokeRect";

export interface Pen extends Pick<CanvasRenderingContext2D, Used> {
    fill(): void;
    fillText(text: string, x: number, y: number): void;
    measureText(text: string): { width: number };
}
