/** What differs between the app's windows and a browser. Everything else goes over the host's HTTP API. */
export interface Platform {
  /** The API's address and token. `url` is empty if the host serves the page; then a cookie replaces the token. */
  connection(): Promise<Connection>;
  /** Opens the settings, at the given section. */
  openSettings(section?: SettingsSection): Promise<void>;
  /** Opens the chat window, with this chat if one is named. */
  openChat(id?: string): Promise<void>;
  /** Closes the popover; absent in a browser. */
  closePopover?(): Promise<void>;
  /** The login item; absent in a browser. */
  loginItem?: LoginItem;
  /** Rejects with the reason if the system does not take these keys; absent in a browser. */
  checkShortcut?(keys: string): Promise<void>;
  /** The `tierbar` command in the user's terminal; absent in a browser. */
  commandLine?: CommandLineTool;
  /** Whether files are saved in the Downloads folder without a sign of it; a browser shows them itself. */
  savesQuietly?: true;
  /** The system's notifications; absent where this page cannot show any. */
  notifications?: Notifications;
  /** Shows the models folder in the file manager; absent in a browser. */
  revealModelsFolder?(): Promise<void>;
  /** Opens the document that a passage is from with its own program; absent in a browser. */
  openDocument?(passage: number): Promise<void>;
  /** Calls back for files and folders that are dragged over this window; absent in a browser, which hides their paths. */
  onFilesDropped?(call: (event: FilesDragged) => void): Promise<() => void>;
  /** What was dropped onto the chat window last; absent in a browser, which hands over the files themselves. */
  dropped?: DroppedFiles;
}

export interface DroppedFiles {
  /** The paths of the folders among them. */
  folders(): Promise<string[]>;
  /** Rejects with a sentence for what cannot be read. */
  read(path: string): Promise<ArrayBuffer>;
}

/** `over` with each move, `leave` without a drop. */
export type FilesDragged = { type: 'over' } | { type: 'leave' } | { type: 'drop'; paths: string[] };

export type SettingsSection =
  | 'general'
  | 'models'
  | 'documents'
  | 'tiers'
  | 'servers'
  | 'connect'
  | 'access'
  | 'monitor';

export interface Notifications {
  /** Whether the browser or the system shows them. */
  permission(): Promise<NotificationPermission>;
  /** Asks the user; resolves to the answer. */
  ask(): Promise<NotificationPermission>;
  /** Shows one, if that is granted. Of several pages with the same tag, the system shows one. */
  show(title: string, body: string, tag: string): void;
}

export interface Connection {
  url: string;
  token?: string;
}

export interface LoginItem {
  get(): Promise<boolean>;
  /** Resolves to the actual state afterwards. */
  set(on: boolean): Promise<boolean>;
}

export interface CommandLineTool {
  get(): Promise<CommandLine>;
  /** Adds or removes it; resolves to what is there afterwards. May ask for an administrator. */
  set(installed: boolean): Promise<CommandLine>;
}

export interface CommandLine {
  /** Where it is, or would be. */
  path: string;
  installed: boolean;
  /** Whether a terminal finds it there. */
  in_path: boolean;
}
