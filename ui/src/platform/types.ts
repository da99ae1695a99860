/** What the page needs from where it runs. Everything else goes over the host's HTTP API. */
export interface Platform {
  /** Where the API is. `url` is empty when the page is served by the host itself; then a cookie stands for the token. */
  connection(): Promise<Connection>;
  /** Opens the settings, at one of their sections if one is named. */
  openSettings(section?: 'models'): Promise<void>;
  openChat(): Promise<void>;
  /** Starting at login; absent where there is no app to start. */
  loginItem?: LoginItem;
  /** Shows the models folder in the Finder or its like; absent in a browser. */
  revealModelsFolder?(): Promise<void>;
}

export interface Connection {
  url: string;
  token?: string;
}

export interface LoginItem {
  get(): Promise<boolean>;
  /** Resolves to the state that really holds afterwards. */
  set(on: boolean): Promise<boolean>;
}
