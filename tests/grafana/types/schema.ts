// The types of our files: those of Grafana's schema, without fields that it does not know, and with the options of the
// three kinds of panels that the generator writes.
import type {
  Dashboard, FieldConfigSource, GraphFieldConfig, Panel, RowPanel, TableFieldOptions, VariableModel,
} from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as TableOptions } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as TimeSeriesOptions } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// JSON has the values of string enums, not their names.
type Plain<T> = unknown extends T ? T
  : T extends string ? `${T}`
  : T extends number | boolean | null | undefined ? T
  : T extends Array<infer U> ? Array<Plain<U>>
  : { [K in keyof T]: Plain<T[K]> };

interface Source { type: 'prometheus'; uid: string }

// A query of Grafana's data source for Prometheus, whose types are not part of the schema.
export interface Query {
  refId: string;
  datasource: Source;
  expr: string;
  legendFormat: string;
  range?: boolean;
  instant?: boolean;
  format?: 'table';
}

interface Organize {
  excludeByName: Record<string, boolean>;
  indexByName: Record<string, number>;
  renameByName: Record<string, string>;
}
type Transformation = { id: 'merge'; options: Record<string, never> } | { id: 'organize'; options: Organize };

// Everything that the generator writes must be there: a missing unit or description is an error too.
type Fields<Custom> = {
  defaults: Omit<NonNullable<FieldConfigSource['defaults']>, 'custom'> & { custom?: Custom };
  overrides: FieldConfigSource['overrides'];
};
type Typed<Kind extends string, Options, Custom> =
  Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'transformations' | 'datasource' | 'title' | 'description' | 'id' | 'gridPos'>
  & Required<Pick<Panel, 'title' | 'description' | 'id' | 'gridPos'>>
  & { type: Kind; options: Options; fieldConfig: Fields<Custom>; targets: Query[]; transformations?: Transformation[]; datasource: Source };

export type AnyPanel = Plain<
  Typed<'stat', StatOptions, never> | Typed<'timeseries', TimeSeriesOptions, GraphFieldConfig> | Typed<'table', TableOptions, TableFieldOptions>
>;
export type File = Plain<Omit<Dashboard, 'panels' | 'templating'>> & {
  panels: Array<AnyPanel | Plain<Omit<RowPanel, 'panels'> & { panels: never[] }>>;
  templating: { list: Array<Plain<VariableModel>> };
};
