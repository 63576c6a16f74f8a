// Draws one dashboard with Grafana's components and the results that /data.json has for each of its panels.
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { dateTime, ThemeContext, type DataFrame, type Field, type TimeRange } from '@grafana/data';
import { BigValue, GlobalStyles, PanelChrome, PortalContainer, TimeSeries } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { frames, theme, type Results } from './frames';
import type { AnyPanel, File } from './schema';

interface Data { dashboard: File; results: Record<string, Results>; from: number; to: number; step: number; choices: string }

const WIDTH = 1200, UNIT = WIDTH / 24, HEIGHT = 30, GAP = 8, TOP = 56;

function values(fields: Field[]): Field | undefined {
  return fields.find((field) => field.type === 'number');
}

function Content({ panel, data, range, width, height }: { panel: AnyPanel; data: DataFrame[]; range: TimeRange; width: number; height: number }) {
  if (panel.type === 'timeseries') {
    return <TimeSeries frames={data} width={width} height={height} timeRange={range} timeZone="utc" legend={panel.options.legend as never} />;
  }
  if (panel.type === 'table') {
    const sortBy = panel.options.sortBy as never;
    return <TableNG data={data[0]!} width={width} height={height} sortBy={sortBy} noHeader={false} enableVirtualization={false} />;
  }
  const field = data[0] && values(data[0].fields);
  const last = field?.values.filter((each) => each !== null && !Number.isNaN(each)).at(-1);
  const empty = { numeric: NaN, text: panel.fieldConfig.defaults.noValue ?? 'No data', color: theme.colors.background.canvas };
  const value = field && last !== undefined ? field.display!(last) : empty;
  return <BigValue width={width} height={height} theme={theme} value={value} colorMode={panel.options.colorMode as never}
    graphMode={panel.options.graphMode as never} justifyMode={panel.options.justifyMode as never} textMode={panel.options.textMode as never} />;
}

function Placed({ panel, data, done }: { panel: AnyPanel; data: Data; done: () => void }) {
  const [found, set] = useState<DataFrame[]>();
  const place = panel.gridPos as { x: number; y: number; w: number; h: number };
  useEffect(() => {
    void frames(panel, data.results[String(panel.id)] ?? {}, data.step).then(set).then(done);
  }, []);
  const [from, to] = [dateTime(data.from * 1000), dateTime(data.to * 1000)];
  const range = { from, to, raw: { from, to } };
  const isEmpty = !found?.some((frame) => frame.fields.some((field) => field.type === 'number' && field.values.some(Number.isFinite)));
  return (
    <div data-panel={panel.title} data-empty={isEmpty} style={{ position: 'absolute', left: place.x * UNIT + GAP / 2, top: place.y * HEIGHT + TOP }}>
      <PanelChrome title={panel.title} width={place.w * UNIT - GAP} height={place.h * HEIGHT - GAP}>
        {(width, height) => (found ? <Content panel={panel} data={found} range={range} width={width} height={height} /> : <></>)}
      </PanelChrome>
    </div>
  );
}

function Page({ data }: { data: Data }) {
  const { dashboard } = data;
  const panels = dashboard.panels.filter((each): each is AnyPanel => each.type !== 'row');
  const [left, set] = useState(panels.length);
  const bottom = Math.max(...dashboard.panels.map((each) => (each.gridPos as { y: number; h: number }).y + (each.gridPos as { h: number }).h));
  return (
    <div data-left={left} style={{ position: 'relative', width: WIDTH, height: bottom * HEIGHT + TOP, background: theme.colors.background.canvas }}>
      <div style={{ padding: '14px 10px', fontSize: 20, color: theme.colors.text.primary }}>
        {dashboard.title} <span style={{ fontSize: 14, color: theme.colors.text.secondary }}>{data.choices}</span>
      </div>
      {dashboard.panels.filter((each) => each.type === 'row').map((row) => (
        <div key={row.id} style={{ position: 'absolute', left: 10, top: (row.gridPos as { y: number }).y * HEIGHT + TOP, fontSize: 15, color: theme.colors.text.primary }}>
          ⌄ {row.title}
        </div>
      ))}
      {panels.map((panel) => <Placed key={panel.id} panel={panel} data={data} done={() => set((number) => number - 1)} />)}
    </div>
  );
}

const data = (await (await fetch('data.json')).json()) as Data;
createRoot(document.getElementById('root')!).render(
  <ThemeContext.Provider value={theme}><GlobalStyles /><PortalContainer /><Page data={data} /></ThemeContext.Provider>,
);
