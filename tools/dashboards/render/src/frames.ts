// The results of Prometheus as Grafana's data frames, with the options of a panel.
import {
  applyFieldOverrides, cacheFieldDisplayNames, createTheme, FieldType, standardTransformers, standardTransformersRegistry, toDataFrame, transformDataFrame,
  FieldConfigOptionsRegistry, standardFieldConfigEditorRegistry,
  type DataFrame, type FieldConfigPropertyItem, type FieldConfigSource,
} from '@grafana/data';
import { lastValueFrom } from 'rxjs';
import type { AnyPanel, Query } from './schema';

export interface Series { metric: Record<string, string>; values: Array<[number, string]> }
export type Results = Record<string, Series[]>;  // by the letter of the query

export const theme = createTheme({ colors: { mode: 'light' } });

standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map((transformation) => ({
    id: transformation.id, name: transformation.name, transformation: () => Promise.resolve(transformation), editor: () => null, imageDark: '', imageLight: '',
  })) as never);

// The properties that overrides set. Grafana's application registers them with editors, which we do not need.
const property = (id: string, path: string, isCustom = false): FieldConfigPropertyItem => ({
  id, path, name: id, isCustom, process: (value: unknown) => value, shouldApply: () => true, settings: {},
  editor: () => null, override: () => null,
} as unknown as FieldConfigPropertyItem);
const NAMES = ['unit', 'min', 'max', 'decimals', 'displayName', 'noValue', 'thresholds', 'color', 'links', 'mappings'];
standardFieldConfigEditorRegistry.setInit(() => NAMES.map((name) => property(name, name)));
const CUSTOM = ['align', 'cellOptions', 'inspect', 'minWidth', 'drawStyle', 'lineInterpolation', 'lineWidth', 'fillOpacity', 'showPoints',
  'spanNulls', 'axisPlacement', 'axisSoftMax', 'stacking', 'thresholdsStyle'];
const registry = new FieldConfigOptionsRegistry(() => [
  ...NAMES.map((name) => property(name, name)), ...CUSTOM.map((name) => property(`custom.${name}`, name, true)),
]);

const legend = (query: Query, metric: Record<string, string>) =>
  query.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, name: string) => metric[name] ?? '');

// Grafana's panels draw nothing for values such as a quantile of no requests, which is NaN.
const finite = (value: string) => (Number.isFinite(Number(value)) ? Number(value) : null);

function graph(query: Query, series: Series, step: number): DataFrame {
  const name = legend(query, series.metric) || 'Value';
  return toDataFrame({
    refId: query.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: series.values.map(([time]) => time * 1000), config: { interval: step * 1000 } },
      { name: 'Value', type: FieldType.number, values: series.values.map(([, value]) => finite(value)), config: { displayNameFromDS: name }, labels: series.metric },
    ],
  });
}

function table(query: Query, found: Series[]): DataFrame {
  const labels = [...new Set(found.flatMap((each) => Object.keys(each.metric)))].sort();
  const last = found.map((each) => each.values[each.values.length - 1]!);
  return toDataFrame({
    refId: query.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: last.map(([time]) => time * 1000), config: {} },
      ...labels.map((label) => ({ name: label, type: FieldType.string, values: found.map((each) => each.metric[label]), config: {} })),
      { name: `Value #${query.refId}`, type: FieldType.number, values: last.map(([, value]) => Number(value)), config: {} },
    ],
  });
}

// `step`: seconds between two points of a series; a line has a gap where one is missing.
export async function frames(panel: AnyPanel, results: Results, step: number): Promise<DataFrame[]> {
  const queries = panel.targets as Query[];
  const raw = queries.flatMap((query) =>
    query.format === 'table' ? [table(query, results[query.refId] ?? [])] : (results[query.refId] ?? []).map((each) => graph(query, each, step)));
  const data = await lastValueFrom(transformDataFrame((panel.transformations ?? []) as never, raw));
  const overridden = applyFieldOverrides({
    data, theme, timeZone: 'utc', fieldConfig: panel.fieldConfig as FieldConfigSource, fieldConfigRegistry: registry, replaceVariables: (text) => text,
  });
  cacheFieldDisplayNames(overridden);
  overridden.forEach((frame, index) => frame.fields.forEach((field) => {
    field.state = { ...field.state, seriesIndex: index };
  }));
  return overridden;
}
